/* Makes a failed scenario smaller, by runs, as long as it fails in the same way. */
#include "harness/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/printing.h"
#include "harness/verbs/shrink/attempt.h"
#include "harness/verbs/typed.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS_MAX = 1000 };

struct shrink_request {
    struct arena arena;
    const char *dir;
    const char **checks; /* to be freed */
    struct recording recording;
    struct found_failure failure;
    struct scenario given; /* as recorded, with its seed and another name */
    struct attempts attempts;
    struct reduction reduction;
    int64_t budget_ns;
    struct headway_wish wish;
    const char *file; /* of the smallest */
};

static volatile sig_atomic_t signalled;

static void on_signal(int signo) {
    signalled = signo;
}

/* ---- what was typed ---- */

static const struct verb_option options[] = {
    {"--out", "DIR", "where the runs and the scenario are kept (default: DIR/shrink)"},
    {"--check", "NAME", "only this check must fail; may be repeated (default: all that failed)"},
    {"--repeat", "N", "each is run up to N times: for a failure that does not always come"},
    {"--share", "PERCENT",
     "how many of these, in per cent, must fail in the same way (default: one run)"},
    {"--budget", "TIME", "no run is begun after so long, 10m; the smallest until then is kept"},
    VERB_HEADWAY,
    {0},
};

static int take_numbers(struct shrink_request *q, const struct arguments *a) {
    struct attempts *t = &q->attempts;
    const char *share = arguments_value(a, "--share");
    int64_t percent = 0;
    t->runs = t->needed = 1;
    int r = arguments_headway(a, &q->wish);
    t->quiet = q->wish.quiet;
    if (r == 0)
        r = arguments_number(a, "--repeat", 1, RUNS_MAX, &t->runs);
    if (r == 0)
        r = arguments_number(a, "--share", 1, 100, &percent);
    if (r)
        return r;
    if (share && t->runs == 1)
        return verb_usage_error(a->verb, "--share %s: of how many runs? Write --repeat N", share);
    t->needed = percent ? (percent * t->runs + 99) / 100 : 1;
    return arguments_duration(a, "--budget", &q->budget_ns);
}

static int take_arguments(struct shrink_request *q, const struct arguments *a) {
    const char *out = arguments_value(a, "--out");
    if (a->files_n != 1 || a->rest)
        return verb_usage_error(a->verb, a->files_n > 1 ? "one run at a time" : "which run?");
    q->dir = arena_strdup(&q->arena, a->files[0]);
    q->attempts.out = out ? arena_strdup(&q->arena, out) : NULL;
    q->checks = arguments_all(a, "--check");
    return take_numbers(q, a);
}

/* ---- the recorded run ---- */

/* Of a folder that is no run itself. */
static void say_runs_of(struct shrink_request *q) {
    DIR *d = opendir(q->dir);
    const char *one = NULL;
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (file_exists(arena_printf(&q->arena, "%s/%s/history.jsonl", q->dir, e->d_name))) {
            one = !one || strcmp(e->d_name, one) < 0 ? arena_strdup(&q->arena, e->d_name) : one;
            n++;
        }
    if (d)
        closedir(d);
    if (n)
        printing_line(stderr,
                      "it holds %d run%s: give one that failed, as in rankquake shrink %s/%s", n,
                      n == 1 ? "" : "s", q->dir, one);
}

/* The targets that were drawn, by name, and which entries came about. */
static void take_incidents(struct shrink_request *q, struct reduction_spec *spec) {
    struct recording *r = &q->recording;
    size_t n = r->scenario->timeline_n;
    bool *fired = arena_array(&q->arena, bool, n + 1);
    const char **struck = arena_array(&q->arena, const char *, n + 1);
    struct incidents is = {0};
    incidents_load(&is, &r->history, &r->rounds);
    for (size_t i = 0; i < n; i++) {
        fired[i] = false;
        struck[i] = NULL;
        for (size_t k = 0; k < is.n; k++) {
            const struct incident *x = is.v[k];
            if (!str_eq(x->id, r->scenario->timeline[i].id))
                continue;
            const char *name = x->targets_n == 1 && x->n == 1 ? x->targets[0].name : NULL;
            fired[i] = x->fired;
            struck[i] = name ? arena_strndup(&q->arena, name, strcspn(name, " ")) : NULL;
        }
    }
    incidents_fini(&is);
    spec->fired = fired;
    spec->struck = struck;
}

static void take_scenario(struct shrink_request *q) {
    const struct history *h = &q->recording.history;
    q->given = *q->recording.scenario;
    q->given.seed = q->attempts.seed = h->n ? (uint64_t)record_i64(h->records[0], "seed", 1)
                                       : q->given.has_seed ? q->given.seed
                                                           : 1;
    q->given.has_seed = true;
    if (!str_ends(q->given.name, "-shrunk"))
        q->given.name = arena_printf(&q->arena, "%s-shrunk", q->given.name);
}

static int read_run(struct shrink_request *q) {
    BUF_FINI struct buf complaint = {0};
    struct err err = {0};
    int code = recording_load(&q->recording, q->dir, &complaint) < 0 ? EXIT_USAGE_ERROR : 0;
    if (code) {
        fprintf(stderr, "rankquake shrink: %s", buf_str(&complaint));
        say_runs_of(q);
    } else if (failure_read(&q->arena, &q->recording, (const char *const *)q->checks, &q->failure,
                            &err) < 0) {
        printing_line(stderr, "rankquake shrink: %s: %s", q->dir, err.msg);
        code = EXIT_USAGE_ERROR;
    } else {
        take_scenario(q);
    }
    return code;
}

/* ---- the search ---- */

/* DIR/shrink, or with a number when it was shrunk before. */
static int make_out(struct shrink_request *q) {
    struct err err = {0};
    const char *wanted = q->attempts.out, *path = wanted;
    for (int i = 1; !wanted && (i == 1 || file_exists(path)); i++)
        path = i == 1 ? arena_printf(&q->arena, "%s/shrink", q->dir)
                      : arena_printf(&q->arena, "%s/shrink-%d", q->dir, i);
    q->attempts.out = path;
    q->file = arena_printf(&q->arena, "%s/smallest.yaml", path);
    if (wanted && file_exists(q->file))
        return verb_usage_error(&verb_shrink, "--out %s: a scenario was made there before, %s",
                                wanted, q->file);
    if (file_make_dirs(path, 0777, &err) == 0)
        return 0;
    fprintf(stderr, "rankquake shrink: %s; another place can be named with --out\n", err.msg);
    return EXIT_BROKEN;
}

static const char *checks_text(struct shrink_request *q) {
    BUF_FINI struct buf text = {0};
    for (const char **c = q->failure.checks; *c; c++)
        buf_printf(&text, "%s%s", text.len ? ", " : "", *c);
    return arena_strdup(&q->arena, buf_str(&text));
}

static void put_size(const struct scenario *s, struct buf *out) {
    buf_printf(out, "%zu entr%s of the timeline, %d node%s with %d worker%s each", s->timeline_n,
               s->timeline_n == 1 ? "y" : "ies", s->cluster.nodes, s->cluster.nodes == 1 ? "" : "s",
               s->job.workers_per_node, s->job.workers_per_node == 1 ? "" : "s");
}

static void search(struct shrink_request *q) {
    struct reduction_spec spec = {.checks = (const char *const *)q->failure.checks,
                                  .fixed = q->failure.counted,
                                  .try = attempt_make,
                                  .arg = &q->attempts};
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction taken = {.sa_handler = on_signal};
    BUF_FINI struct buf size = {0};
    put_size(&q->given, &size);
    printf("%s failed: %s; seed %" PRIu64 ", %s\n", q->recording.scenario->name, checks_text(q),
           q->attempts.seed, buf_str(&size));
    fflush(stdout);
    for (size_t i = 0; i < 3; i++)
        sigaction(signals[i], &taken, NULL);
    q->attempts.arena = &q->arena;
    q->attempts.failure = &q->failure;
    q->attempts.signalled = &signalled;
    q->attempts.until_ns = q->budget_ns ? clock_monotonic_ns() + q->budget_ns : 0;
    take_incidents(q, &spec);
    headway_begin(&q->attempts.headway, &(struct headway_spec){.out = stdout,
                                                               .verb = "shrink",
                                                               .unit = "attempts",
                                                               .until_ns = q->attempts.until_ns,
                                                               .no_lines = true,
                                                               .wish = q->wish});
    reduction_run(&q->arena, &q->given, &spec, &q->reduction);
    headway_end(&q->attempts.headway);
    unlink(arena_printf(&q->arena, "%s/trying.yaml", q->attempts.out)); /* each run has its own */
}

/* ---- what came of it ---- */

static int tell_gone(struct shrink_request *q) {
    const struct attempts *t = &q->attempts;
    if (t->interrupted)
        fprintf(stderr, "rankquake shrink: interrupted before it had failed again\n");
    else if (t->broken)
        fprintf(stderr,
                "rankquake shrink: as it was recorded it cannot be run here: %s. Start shrink in "
                "the directory, and with the variables, that the run had\n",
                t->broken);
    else if (t->late && !t->runs_made)
        fprintf(stderr, "rankquake shrink: --budget was over before anything was run\n");
    else
        fprintf(stderr,
                "rankquake shrink: as it was recorded it does not fail any more, in %d run%s; if "
                "it does so only at times, --repeat %" PRId64 " looks longer\n",
                t->runs_made, t->runs_made == 1 ? "" : "s", t->runs < 10 ? 10 : t->runs * 3);
    return t->interrupted ? EXIT_INTERRUPTED : t->broken ? t->broken_code : EXIT_INCONCLUSIVE;
}

static void put_comment(struct shrink_request *q, struct buf *out) {
    const struct attempts *t = &q->attempts;
    BUF_FINI struct buf before = {0}, after = {0};
    put_size(&q->given, &before);
    put_size(q->reduction.smallest, &after);
    buf_printf(out, "# Made by rankquake shrink of the run %s\n", q->dir);
    buf_printf(out, "# It fails as that one: %s; seed %" PRIu64 "; seen in %s\n", checks_text(q),
               t->seed, t->best_dir);
    buf_printf(out, "# Before: %s. Now: %s.\n", buf_str(&before), buf_str(&after));
    if (t->interrupted || t->late)
        buf_printf(out, "# The search was %s: there may be a smaller one.\n",
                   t->interrupted ? "interrupted" : "ended by --budget");
    buf_puts(out, "#\n");
}

static int write_smallest(struct shrink_request *q) {
    struct buf text = {0}, path = {0};
    struct err err = {0};
    char *words[] = {(char *)(uintptr_t)q->file, NULL};
    put_comment(q, &text);
    typed_print(words, &path);
    buf_printf(&text, "#     rankquake run %s\n", buf_str(&path));
    scenario_print(q->reduction.smallest, &text);
    int r = file_write_atomic(q->file, text.data, text.len, &err);
    if (r < 0)
        fprintf(stderr, "rankquake shrink: %s\n", err.msg);
    buf_fini(&text);
    buf_fini(&path);
    return r < 0 ? EXIT_BROKEN : 0;
}

static int tell(struct shrink_request *q) {
    const struct attempts *t = &q->attempts;
    BUF_FINI struct buf size = {0};
    if (!q->reduction.smallest)
        return tell_gone(q);
    int code = write_smallest(q);
    if (code)
        return code;
    put_size(q->reduction.smallest, &size);
    if (q->failure.counted)
        printf("%s counts what exactly these faults come to: with fewer of them something else "
               "would be expected\n",
               checks_text(q));
    printf("%s: %s, after %d run%s\n",
           t->interrupted ? "smallest until it was interrupted"
           : t->late      ? "smallest within --budget"
                          : "smallest",
           buf_str(&size), t->runs_made, t->runs_made == 1 ? "" : "s");
    printf("last seen  %s\nagain      rankquake run %s\n", t->best_dir, q->file);
    return t->interrupted ? EXIT_INTERRUPTED : EXIT_PASS;
}

static int main_shrink(int argc, char **argv) {
    struct arguments a;
    struct shrink_request *q = mem_new(struct shrink_request);
    int code = arguments_read(&a, &verb_shrink, argc, argv);
    if (code == 0) {
        code = take_arguments(q, &a);
        if (code == 0)
            code = read_run(q);
        if (code == 0)
            code = make_out(q);
        if (code == 0) {
            search(q);
            code = tell(q);
        }
        recording_fini(&q->recording);
        free(q->checks);
        arguments_fini(&a);
    }
    arena_fini(&q->arena);
    free(q);
    return code;
}

const struct verb verb_shrink = {
    .name = "shrink",
    .usage = "shrink DIR [options]",
    .summary = "run a failed scenario with less and less, and write the smallest that still fails",
    .example = "shrink runs/tour-1-20260105-093000 --budget 10m",
    .operands = "DIR",
    .options = options,
    .main = main_shrink,
};
