#include "harness/verbs/typed.h"

#include "agent/base/str.h"
#include "agent/sys/file.h"
#include "agent/sys/printing.h"
#include "harness/cluster/layer.h"
#include "harness/recording.h"
#include "harness/play/announcement.h"
#include "harness/play/jobs.h"
#include "harness/play/suite.h"
#include "reports/overview.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct trying {
    struct arena arena;
    struct typed typed;
    const char **sets; /* what the undisturbed run is loaded with */
    struct suite_options suite;
    uint64_t seed;
    int64_t jobs;
    struct folder dir;
    struct err not_undone; /* why what the job writes stays, if it does */
    struct scenario *base;
    struct plan *plan;
    struct control control;
    struct sketch_run run;
    struct sketch_moment moment;
    struct job files[SKETCH_FAULTS];
    struct overview overview;
    struct overview_row rows[1 + SKETCH_FAULTS];
};

static int broken(const struct err *err) {
    fprintf(stderr, "rankquake try: %s\n", err->msg);
    return EXIT_BROKEN;
}

static void say_plan(const struct trying *t) {
    announcement_plan(&(struct announcement){.sketch = &t->typed.sketch,
                                             .base = t->base,
                                             .plan = t->plan,
                                             .dir = t->dir.path,
                                             .not_undone = &t->not_undone});
}

/* ---- what was asked for ---- */

static const struct verb_option options[] = {
    {"--launcher", "X", "start it with rankrun, torchrun, a command of yours or a template"},
    {"--observe", "KIND=REGEX",
     "read events from what workers print, step='step ([0-9]+)'; or a preset: lightning"},
    {"--rootfs", "DIR", "the root file system of every node, a debootstrap tree for example"},
    {"--isolation", "KIND", "how nodes are kept apart: auto, namespaces or processes"},
    {"--nodes", "N", "emulated nodes (default: as the command says, or 2)"},
    {"--workers", "N", "workers on each node (default: as the command says, or 1)"},
    {"--limit", "NAME=TIME", "start=15m, stall=5m, total=2h: how long things may take"},
    {"--set", "KEY=VALUE", "a value of the scenarios, job.checkpoint.dir=ckpt; may be repeated"},
    {"--seed", "N", "the seed of all draws (default: 1)"},
    {"--jobs", "N", "N runs side by side, where faults hit a step and not a time"},
    {"--out", "DIR", "where the folder of the runs is made (default: runs)"},
    {"--keep", NULL, "keep scratch directories"},
    {"--fresh", NULL, "make the control run again, whatever the cache holds"},
    {"--strict", NULL, "inconclusive and skipped count as failed"},
    {0},
};

/* Undisturbed, nobody knows yet how long the job takes to start. */
static const char *const patience[] = {"limits.start=15m", "limits.stall=15m", "limits.total=1h"};
enum { PATIENCE = sizeof(patience) / sizeof(*patience) };

static void take_sets(struct trying *t, const struct arguments *a) {
    const char **limits = arguments_all(a, "--limit");
    size_t n = 0, limits_n = 0, k = 0;
    while (t->typed.sets[n])
        n++;
    while (limits[limits_n])
        limits_n++;
    t->sets = arena_array(&t->arena, const char *, PATIENCE + n + limits_n + 1);
    for (size_t i = 0; i < PATIENCE; i++)
        t->sets[k++] = patience[i];
    for (size_t i = 0; i < n; i++)
        t->sets[k++] = t->typed.sets[i];
    for (size_t i = 0; i < limits_n; i++)
        t->sets[k++] = arena_printf(&t->arena, "limits.%s", limits[i]);
    free(limits);
}

static int take_options(struct trying *t, const struct arguments *a) {
    const char *seed = arguments_value(a, "--seed"), *out = arguments_value(a, "--out");
    int64_t v = 1;
    t->jobs = 1;
    if (seed && !str_to_i64(seed, 0, INT64_MAX, &v))
        return verb_usage_error(a->verb, "--seed %s: write a whole number, 0 or more", seed);
    int r = arguments_number(a, "--jobs", 1, 1000, &t->jobs);
    if (r)
        return r;
    t->seed = (uint64_t)v;
    t->suite = (struct suite_options){.out = out ? out : "runs",
                                      .format = "terminal",
                                      .bin = suite_bin(&t->arena),
                                      .keep = arguments_value(a, "--keep"),
                                      .strict = arguments_value(a, "--strict"),
                                      .fresh = arguments_value(a, "--fresh"),
                                      .brief = true};
    take_sets(t, a);
    return 0;
}

/* ---- scenarios ---- */

static const char *write_scenario(struct trying *t, const char *name, const struct buf *text,
                                  struct err *err) {
    const char *file = arena_printf(&t->arena, "%s.yaml", name);
    return folder_write(&t->dir, file, text->data, text->len, err) == 0
               ? arena_printf(&t->arena, "%s/%s", t->dir.path, file)
               : NULL;
}

static struct scenario *load(const char *path, const char *const *sets, uint64_t seed,
                             struct plan **ret_plan) {
    struct diagnostics d = {0};
    struct scenario *s = scenario_load(path, sets, &d);
    *ret_plan = s ? plan_make(s, seed, &d) : NULL;
    fprintf(stderr, "%s%s", str_starts(buf_str(&d.out), "--") ? "rankquake try: " : "",
            buf_str(&d.out));
    diagnostics_fini(&d);
    return *ret_plan ? s : scenario_free(s);
}

static int check_host(struct plan *p) {
    struct err err = {0};
    int r = plan_check_host(p, &err);
    if (r || p->launcher_note)
        fprintf(stderr, "rankquake try: %s\n", r ? err.msg : p->launcher_note);
    return r == 0 ? 0 : r == -ENOENT ? EXIT_USAGE_ERROR : EXIT_SKIPPED;
}

/* The undisturbed scenario, written and loaded. */
static int write_base(struct trying *t) {
    struct err err = {0};
    struct buf text = {0};
    typed_put(&t->typed, &text);
    const char *path = write_scenario(t, "undisturbed", &text, &err);
    buf_fini(&text);
    if (!path)
        return broken(&err);
    t->plan = plan_free(t->plan);
    t->base = scenario_free(t->base);
    t->base = load(path, t->sets, t->seed, &t->plan);
    return t->base ? check_host(t->plan) : EXIT_USAGE_ERROR;
}

/* A mistake leaves no folder behind. Where no layer can be had, what the job writes stays. */
static int load_base(struct trying *t) {
    struct err err = {0};
    const char *name = arena_printf(&t->arena, "try-%s", t->typed.command.name);
    if (suite_make_dir(t->suite.out, name, t->seed, &t->dir, &err) != 0)
        return broken(&err);
    int code = write_base(t);
    if (code == 0 && t->plan->isolation == ISOLATION_NAMESPACES &&
        layer_check(t->dir.path, &t->not_undone) != 0) {
        t->typed.sketch.undone = false;
        code = write_base(t);
    }
    if (code)
        file_remove_tree(t->dir.path, NULL);
    return code;
}

/* Limits that were not asked for follow from the undisturbed run: 0 for those. */
static bool asked(const struct trying *t, const char *limit) {
    for (const char **s = t->sets + PATIENCE; *s; s++)
        if (str_starts(*s, limit) && (*s)[strlen(limit)] == '=')
            return true;
    return false;
}

static void forget_limits(const struct trying *t, struct limits *l) {
    l->start_ns = asked(t, "limits.start") ? l->start_ns : 0;
    l->stall_ns = asked(t, "limits.stall") ? l->stall_ns : 0;
    l->total_ns = asked(t, "limits.total") ? l->total_ns : 0;
    l->grace_ns = asked(t, "limits.grace") ? l->grace_ns : 0;
}

static int write_faults(struct trying *t) {
    struct err err = {0};
    struct scenario base = *t->base;
    struct buf text = {0};
    int code = 0;
    forget_limits(t, &base.limits);
    for (int i = 0; i < SKETCH_FAULTS && code == 0; i++) {
        buf_clear(&text);
        sketch_put_scenario(i, &t->typed.sketch, &base, &t->run, &t->moment, &text);
        t->files[i] = (struct job){.file = write_scenario(t, sketch_faults[i].name, &text, &err),
                                   .seed = t->seed};
        t->files[i].code = -1;
        if (!t->files[i].file)
            code = broken(&err);
    }
    buf_fini(&text);
    return code;
}

/* ---- undisturbed ---- */

static struct overview_row empty_row(const char *name, int code) {
    return (struct overview_row){
        .name = name, .exit_code = code, .detect_ns = -1, .recover_ns = -1, .lost_steps = -1};
}

static void describe_control(struct trying *t) {
    const struct control *c = &t->control;
    struct overview_row *row = &t->rows[0];
    char steps[64] = "", link[600];
    if (c->last_step >= 0)
        snprintf(steps, sizeof(steps), ", steps to %lld", (long long)c->last_step);
    *row = empty_row("control run", 0);
    snprintf(row->what, sizeof(row->what), "%d workers, %.1f s%s",
             t->typed.sketch.nodes * t->typed.sketch.workers,
             (double)(c->start_ns + c->train_ns) / 1e9, steps);
    snprintf(link, sizeof(link), "%s/report.html", c->made);
    if (*c->made && file_exists(link))
        row->link = c->cached ? c->made : "control";
    announcement_ended(
        row->name, 0,
        arena_printf(&t->arena, "%s%s", row->what,
                     c->cached ? "; kept from before (--fresh makes it again)" : ""));
}

static int run_control(struct trying *t) {
    struct err err = {0};
    int code = suite_control(t->plan, &t->suite, &t->dir, &t->control, &err);
    if (code) {
        if (err.code)
            fprintf(stderr, "rankquake try: %s%s\n", err.msg,
                    strstr(err.msg, "(limits.") ? ". Give it less to do, or more time: --limit "
                                                  "start=30m, --limit total=3h"
                                                : "");
        return code;
    }
    typed_keep_control(&t->typed, t->suite.bin, &t->control);
    t->run = suite_sketch_run(&t->control);
    describe_control(t);
    if (!sketch_moment(&t->run, &t->moment, &err)) {
        fprintf(stderr, "rankquake try: %s\n", err.msg);
        return t->suite.strict ? EXIT_FAIL : EXIT_INCONCLUSIVE;
    }
    struct buf when = {0};
    sketch_put_moment(&t->run, &t->moment, &when);
    announcement_say("each fault strikes at %s; the control run is not made again", buf_str(&when));
    buf_fini(&when);
    return 0;
}

/* ---- disturbed ---- */

/* The run directory that a scenario has made in ours. */
static const char *find_dir(struct trying *t, const char *name) {
    const char *found = NULL,
               *prefix = arena_printf(&t->arena, "%s-%llu-", name, (unsigned long long)t->seed);
    struct dirent **names;
    int n = folder_list(&t->dir, ".", NULL, &names, NULL);
    for (int i = 0; i < n; i++) {
        if (str_starts(names[i]->d_name, prefix) && folder_has_directory(&t->dir, names[i]->d_name))
            found = arena_strdup(&t->arena, names[i]->d_name);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return found;
}

static void skip(struct trying *t, int i, const char *why) {
    struct overview_row *row = &t->rows[1 + i];
    t->files[i].code = t->suite.strict ? EXIT_FAIL : EXIT_SKIPPED;
    str_copy(row->what, sizeof(row->what), "skipped, see below");
    str_copy(row->seen, sizeof(row->seen), why);
}

/* The job was over before its time, and so would be the next one. */
static void say_why_over(struct trying *t, struct overview_row *row) {
    char cwd[4096];
    bool here = !t->base->job.writes_undone && getcwd(cwd, sizeof(cwd));
    const char *where = here ? cwd : "somewhere outside of this directory";
    const char *cure = !here                ? ""
                       : t->not_undone.code ? ", or use namespaces"
                                            : ", or job.writes: undone";
    str_copy(row->what, sizeof(row->what), "the job ended well before the fault could come");
    str_copy(row->expected, sizeof(row->expected), "a job that starts from nothing in every run");
    snprintf(row->seen, sizeof(row->seen),
             "it went on, it seems, from what the control run had written to %.120s: give it a "
             "fresh directory in every run, {out} or {shared}%s",
             where, cure);
}

/* What came of it, out of what was written: the same whoever ran it. */
static void read_row(struct trying *t, int i) {
    struct overview_row *row = &t->rows[1 + i];
    struct recording r;
    struct buf complaint = {0};
    row->exit_code = t->files[i].code;
    row->link = find_dir(t, row->name);
    const char *dir = row->link ? arena_printf(&t->arena, "%s/%s", t->dir.path, row->link) : NULL;
    if (dir && recording_load(&r, dir, &complaint) == 0) {
        overview_read(&t->overview, row, &r.run);
        if (row->over_before)
            say_why_over(t, row);
        recording_fini(&r);
    } else if (!*row->seen) {
        str_copy(row->what, sizeof(row->what), "not run");
        str_copy(row->seen, sizeof(row->seen), buf_str(&complaint));
    }
    buf_fini(&complaint);
    announcement_ended(row->name, row->exit_code, row->what);
}

static void run_one(struct trying *t, int i) {
    struct plan *p;
    struct err err = {0};
    struct scenario *s = load(t->files[i].file, NULL, t->seed, &p);
    t->files[i].code = EXIT_BROKEN;
    if (!s)
        return; /* what was said is on stderr */
    if (plan_check_host(p, &err) != 0) {
        skip(t, i, err.msg);
    } else {
        t->files[i].code = suite_run(p, &t->suite, &err);
        if (err.code)
            fprintf(stderr, "rankquake try: %s: %s\n", s->name, err.msg);
    }
    plan_free(p);
    scenario_free(s);
}

static void on_ended(void *arg, struct job *j) {
    struct trying *t = arg;
    read_row(t, (int)(j - t->files));
}

/* Side by side each is a harness of its own; what it prints is in its reports. */
static void run_side_by_side(struct trying *t) {
    struct err err = {0};
    const char *more[] = {"--out", t->dir.path, t->suite.keep ? "--keep" : NULL, NULL};
    for (int i = 0; i < SKETCH_FAULTS; i++)
        t->files[i].alone = !t->moment.by_step;
    if (jobs_run(t->files, SKETCH_FAULTS, (int)t->jobs, more, on_ended, t, &err) < 0)
        fprintf(stderr, "rankquake try: %s\n", err.msg);
}

/* Four more of the same would teach nothing. */
static bool stop_after(struct trying *t, int i) {
    if (!t->rows[1 + i].over_before)
        return false;
    for (int k = i + 1; k < SKETCH_FAULTS; k++)
        t->rows[1 + k].exit_code = EXIT_INCONCLUSIVE;
    announcement_say("the others are not run: they would be over before their time as well");
    return true;
}

static void run_all(struct trying *t) {
    for (int i = 0; i < SKETCH_FAULTS; i++) {
        t->rows[1 + i] = empty_row(sketch_faults[i].name, EXIT_INTERRUPTED);
        str_copy(t->rows[1 + i].what, sizeof(t->rows[1 + i].what), "not run");
    }
    t->suite.out = t->dir.path;
    t->suite.fresh = false;
    for (int i = 0; i < SKETCH_FAULTS; i++) {
        const char *why = sketch_why_not(&t->arena, i, &t->typed.sketch, t->base, &t->run);
        if (!why)
            continue;
        skip(t, i, why);
        if (t->jobs > 1)
            read_row(t, i);
    }
    if (t->jobs > 1) {
        run_side_by_side(t);
        return;
    }
    for (int i = 0; i < SKETCH_FAULTS; i++) {
        if (t->files[i].code < 0)
            run_one(t, i);
        read_row(t, i);
        if (t->files[i].code == EXIT_INTERRUPTED || stop_after(t, i))
            break;
    }
}

/* ---- what came of it ---- */

static const char *const mend_steps =
    "With step events faults hit a named step, and lost work, stalls and resuming are judged: "
    "rankquake.py or rankquake.h in the job, or observe: on its output (docs/first-hour.md).";
static const char *const mend_checkpoints =
    "With the directory of the checkpoints the harness reads it itself: "
    "--set job.checkpoint.dir=DIR --set job.checkpoint.complete=COMMAND (docs/first-hour.md).";

static int report(struct trying *t) {
    struct err err = {0};
    struct buf out = {0}, page = {0};
    const char *mend[3] = {NULL};
    size_t n = 0;
    struct report_style style = overview_style(stdout);
    struct overview *o = &t->overview;
    if (!o->steps)
        mend[n++] = mend_steps;
    if (!t->base->job.checkpoint_dir)
        mend[n++] = mend_checkpoints;
    o->mend = mend;
    buf_putc(&out, '\n');
    overview_put(o, &style, &out);
    overview_html(o, &page);
    int r = folder_write(&t->dir, "index.html", page.data, page.len, &err);
    printing_put(stdout, buf_str(&out), out.len);
    if (r == 0)
        printf("\nreport     %s/index.html\n", t->dir.path);
    buf_fini(&out);
    buf_fini(&page);
    return r == 0 ? 0 : broken(&err);
}

static int exit_code_of(const struct trying *t) {
    int codes[SKETCH_FAULTS];
    size_t n = 0;
    for (int i = 0; i < SKETCH_FAULTS; i++)
        if (t->files[i].code >= 0)
            codes[n++] = t->files[i].code;
    return suite_exit_code(codes, n);
}

static void say_interrupted(void) {
    announcement_say("interrupted; everything is taken down");
}

static int try_it(struct trying *t, const struct arguments *a) {
    struct buf command = {0};
    int code = typed_read(&t->arena, a, &t->typed);
    if (code == 0)
        code = take_options(t, a);
    if (code == 0)
        code = load_base(t);
    if (code)
        return code;
    say_plan(t);
    typed_print(a->rest, &command);
    t->overview =
        (struct overview){.title = arena_printf(&t->arena, "try %s", t->typed.command.name),
                          .command = arena_strdup(&t->arena, buf_str(&command)),
                          .rows = t->rows,
                          .rows_n = 1 + SKETCH_FAULTS};
    buf_fini(&command);
    code = run_control(t);
    if (code == EXIT_INTERRUPTED)
        say_interrupted();
    if (code == 0)
        code = write_faults(t);
    if (code)
        return code;
    run_all(t);
    if (exit_code_of(t) == EXIT_INTERRUPTED)
        say_interrupted();
    code = report(t);
    return code ? code : exit_code_of(t);
}

static int main_try(int argc, char **argv) {
    struct arguments a;
    int code = arguments_read(&a, &verb_try, argc, argv);
    if (code)
        return code;
    struct trying *t = calloc(1, sizeof(*t));
    if (!t)
        abort();
    code = try_it(t, &a);
    plan_free(t->plan);
    scenario_free(t->base);
    arena_fini(&t->arena);
    free(t);
    arguments_fini(&a);
    return code;
}

const struct verb verb_try = {
    .name = "try",
    .usage = "try [options] -- CMD...",
    .summary =
        "run the command that you type today: once without faults, then through five disasters",
    .example = "try -- rankrun --nproc-per-node 2 ranktrain --steps=400 --compute-ms=25",
    .options = options,
    .main = main_try,
};
