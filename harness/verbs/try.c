/* Runs a typed command once without faults, then with each of five, and of those asked for besides. */
#include "harness/verbs/trying.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/cluster/layer.h"
#include "harness/play/announcement.h"
#include "harness/play/remains.h"
#include "harness/play/selection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say_plan(const struct trying *t) {
    announcement_plan(&(struct announcement){.generated = &t->typed.generated,
                                             .base = t->base,
                                             .plan = t->plan,
                                             .faults = t->faults,
                                             .n = t->n,
                                             .dir = t->dir.path,
                                             .budget = t->budget,
                                             .not_undone = &t->not_undone});
}

/* ---- what was asked for ---- */

static const char default_budget[] = "5m";
static const int64_t default_budget_ns = 300 * INT64_C(1000000000);

static const struct verb_option options[] = {
    {"--launcher", "X", "start it with rankrun, torchrun, a command of yours or a template"},
    {"--observe", "KIND=REGEX",
     "read events from what workers print, step='step ([0-9]+)'; or a preset: lightning"},
    {"--rootfs", "DIR", "the root file system of every node, a debootstrap tree for example"},
    {"--isolation", "KIND", "how nodes are kept apart: auto, namespaces or processes"},
    {"--nodes", "N", "emulated nodes (default: as the command says, or 2)"},
    {"--workers", "N", "workers on each node (default: as the command says, or 1)"},
    {"--also", "A,B,...",
     "besides the five, a run with each of these faults (list faults), of a family, or of all"},
    {"--budget", "TIME", "end after this with what there is (default: 5m); the rest is named"},
    {"--limit", "NAME=TIME", "start=15m, stall=5m, total=2h: how long things may take in a run"},
    {"--set", "KEY=VALUE", "a value of the scenarios, job.checkpoint.dir=ckpt; may be repeated"},
    {"--seed", "N", "the seed of all draws (default: 1)"},
    {"--jobs", "N", "N runs side by side, where faults hit a step and not a time"},
    {"--out", "DIR", "where the folder of the runs is made (default: runs)"},
    {"--ci", NULL,
     "as a step of a CI server: reports of all runs in --out, its summary and annotations, no "
     "secrets"},
    {"--keep", NULL, "keep scratch directories"},
    {"--fresh", NULL, "make the control run again, whatever the cache holds"},
    {"--strict", NULL, "inconclusive and skipped count as failed"},
    VERB_HEADWAY,
    {0},
};

/* In a control run nobody knows yet how long the job takes to start. */
static const char *const patience[] = {"limits.start=15m", "limits.stall=15m", "limits.total=1h",
                                       NULL};
enum { PATIENCE = sizeof(patience) / sizeof(*patience) - 1 };

static void take_sets(struct trying *t, const struct arguments *a) {
    const char **limits = arguments_all(a, "--limit");
    for (const char **l = limits; *l; l++)
        *l = arena_printf(&t->arena, "limits.%s", *l);
    t->sets = sets_join(&t->arena, sets_join(&t->arena, patience, t->typed.sets), limits);
    free(limits);
}

static int take_options(struct trying *t, const struct arguments *a) {
    const char *seed = arguments_value(a, "--seed"), *out = arguments_value(a, "--out");
    const char *budget = arguments_value(a, "--budget");
    int64_t v = 1, budget_ns = default_budget_ns;
    struct headway_wish wish;
    t->jobs = 1;
    if (seed && !str_to_i64(seed, 0, INT64_MAX, &v))
        return verb_usage_error(a->verb, "--seed %s: write a whole number, 0 or more", seed);
    int r = arguments_number(a, "--jobs", 1, 1000, &t->jobs);
    if (r == 0)
        r = arguments_duration(a, "--budget", &budget_ns);
    if (r == 0)
        r = arguments_headway(a, &wish);
    if (r)
        return r;
    t->budget = budget ? budget : default_budget;
    t->seed = (uint64_t)v;
    t->suite = (struct suite_options){.out = out ? out : "runs",
                                      .format = "terminal",
                                      .bin = suite_bin(&t->arena),
                                      .keep = arguments_value(a, "--keep"),
                                      .strict = arguments_value(a, "--strict"),
                                      .fresh = arguments_value(a, "--fresh"),
                                      .until_ns = clock_monotonic_ns() + budget_ns,
                                      .verb = "try",
                                      .wish = wish,
                                      .brief = true};
    take_sets(t, a);
    const char **also = arguments_all(a, "--also");
    r = trying_also(t, also);
    free(also);
    return r;
}

/* ---- scenarios ---- */

static const char *write_scenario(struct trying *t, const char *name, const struct buf *text,
                                  struct err *err) {
    const char *file = arena_printf(&t->arena, "%s.yaml", name);
    return folder_write(&t->dir, file, text->data, text->len, err) == 0
               ? arena_printf(&t->arena, "%s/%s", t->dir.path, file)
               : NULL;
}

static int check_host(struct plan *p) {
    struct err err = {0};
    int r = plan_check_host(p, &err);
    if (r || p->launcher_note)
        fprintf(stderr, "rankquake try: %s\n", r ? err.msg : p->launcher_note);
    return r == 0 ? 0 : r == -ENOENT ? EXIT_USAGE_ERROR : EXIT_SKIPPED;
}

/* The control scenario, written and loaded. */
static int write_base(struct trying *t) {
    struct err err = {0};
    BUF_FINI struct buf text = {0};
    typed_put(&t->typed, &text);
    const char *path = write_scenario(t, "control", &text, &err);
    if (!path)
        return verb_broken(&verb_try, &err);
    t->plan = plan_free(t->plan);
    t->base = scenario_free(t->base);
    t->base = trying_load(path, t->sets, t->seed, &t->plan);
    return t->base ? check_host(t->plan) : EXIT_USAGE_ERROR;
}

/* A mistake leaves no folder behind. Where no layer can be had, what the job writes stays. */
static int load_base(struct trying *t) {
    struct err err = {0};
    const char *name = arena_printf(&t->arena, "try-%s", t->typed.command.name);
    if (suite_make_dir(t->suite.out, name, t->seed, &t->dir, &err) != 0)
        return verb_broken(&verb_try, &err);
    int code = write_base(t);
    if (code == 0 && t->plan->isolation == ISOLATION_NAMESPACES &&
        layer_check(t->dir.path, &t->not_undone) != 0) {
        t->typed.generated.undone = false;
        code = write_base(t);
    }
    if (code)
        file_remove_tree(t->dir.path, NULL);
    return code;
}

/* Limits that were not asked for follow from the control run: 0 for those. */
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
    BUF_FINI struct buf text = {0};
    int code = 0;
    t->limited = *t->base;
    forget_limits(t, &t->limited.limits);
    for (int i = 0; i < t->n && code == 0; i++) {
        buf_clear(&text);
        generate_scenario(&t->faults[i], &t->typed.generated, &t->limited, &t->run, &t->moment,
                          &text);
        t->files[i] = (struct job){.file = write_scenario(t, t->faults[i].name, &text, &err),
                                   .seed = t->seed};
        t->files[i].code = -1;
        if (!t->files[i].file)
            code = verb_broken(&verb_try, &err);
    }
    return code;
}

/* ---- undisturbed ---- */

static void describe_control(struct trying *t) {
    const struct control *c = &t->control;
    struct overview_row *row = &t->rows[0];
    char steps[64] = "", link[600];
    if (c->last_step >= 0)
        snprintf(steps, sizeof(steps), ", steps to %lld", (long long)c->last_step);
    *row = trying_row("control run", 0);
    snprintf(row->what, sizeof(row->what), "%d workers, %.1f s%s",
             t->typed.generated.nodes * t->typed.generated.workers,
             (double)(c->start_ns + c->train_ns) / 1e9, steps);
    snprintf(link, sizeof(link), "%s/report.html", c->made);
    if (*c->made && file_exists(link))
        row->link = c->cached ? c->made : "control";
    announcement_ended(
        row->name, 0,
        arena_printf(&t->arena, "%s%s", row->what,
                     c->cached ? "; kept from before (--fresh makes it again)" : ""));
}

static int say_unfinished(const struct trying *t) {
    fprintf(stderr,
            "rankquake try: the control run had not ended when the budget of %s was spent, so "
            "no fault was injected. Give it less to do, or more time: --budget 30m\n",
            t->budget);
    return trying_soft(t, EXIT_INCONCLUSIVE);
}

static int run_control(struct trying *t) {
    struct err err = {0};
    int code = suite_control(t->plan, &t->suite, &t->dir, &t->control, &err);
    if (code == EXIT_INTERRUPTED && !trying_left_ns(t))
        return say_unfinished(t);
    if (code) {
        if (err.code)
            fprintf(stderr, "rankquake try: %s%s\n", err.msg,
                    strstr(err.msg, "(limits.") ? ". Give it less to do, or more time: --limit "
                                                  "start=30m, --limit total=3h"
                                                : "");
        return code;
    }
    typed_keep_control(&t->typed, t->suite.bin, &t->control);
    t->run = suite_generate_run(&t->control);
    describe_control(t);
    if (!generate_moment(&t->run, &t->moment, &err)) {
        verb_broken(&verb_try, &err);
        return trying_soft(t, EXIT_INCONCLUSIVE);
    }
    BUF_FINI struct buf when = {0};
    generate_moment_text(&t->run, &t->moment, &when);
    if (!t->suite.wish.quiet)
        announcement_say("each fault strikes at %s; the control run is not made again",
                         buf_str(&when));
    for (int i = 0; i < t->n; i++)
        generate_on_disk(&t->arena, t->base, &t->run, &t->faults[i]);
    trying_saving(t);
    return 0;
}

/* ---- what came of it ---- */

static int report(struct trying *t) {
    struct err err = {0};
    return announcement_result(&t->overview, t->base, &t->dir, &err) == 0
               ? 0
               : verb_broken(&verb_try, &err);
}

static int exit_code_of(const struct trying *t) {
    BUF_FINI struct buf codes = {0};
    for (int i = 0; i < t->n; i++)
        if (t->files[i].code >= 0)
            buf_put(&codes, &t->files[i].code, sizeof(t->files[i].code));
    return suite_exit_code((const int *)(const void *)codes.data, codes.len / sizeof(int));
}

static void say_interrupted(void) {
    announcement_say("interrupted; everything is taken down");
}

/* ---- for a CI server ---- */

static bool is_taken(const struct trying *t, const char *name) {
    return pipeline_count(&t->pipeline, name) > 0;
}

/* Runs that have left nothing to be read are told by their code. */
static void tell_pipeline(struct trying *t, int code) {
    const char *name = t->typed.command.name ? t->typed.command.name : "try";
    if (t->dir.path)
        pipeline_take_new(&t->pipeline, t->dir.path, true);
    for (int i = 0; i < t->n && t->rows; i++) {
        const struct overview_row *row = &t->rows[1 + i];
        if (row->name && !is_taken(t, row->name))
            pipeline_missing(&t->pipeline, row->name, t->files[i].file ? t->files[i].file : name,
                             row->exit_code, *row->seen ? row->seen : row->what);
    }
    if (!t->pipeline.n)
        pipeline_missing(&t->pipeline, name, name, code,
                         "no fault was tried; what was printed says why");
}

static int try_it(struct trying *t, const struct arguments *a) {
    BUF_FINI struct buf command = {0};
    int code = typed_read(&t->arena, a, &t->typed);
    if (code == 0)
        code = take_options(t, a);
    if (code == 0)
        code = load_base(t);
    if (code)
        return code;
    if (!t->suite.wish.quiet)
        say_plan(t);
    remains_tell("try", t->suite.out, stderr);
    typed_print(a->rest, &command);
    t->overview =
        (struct overview){.title = arena_printf(&t->arena, "try %s", t->typed.command.name),
                          .command = arena_strdup(&t->arena, buf_str(&command)),
                          .rows = t->rows,
                          .rows_n = 1 + (size_t)t->n};
    code = run_control(t);
    if (code == EXIT_INTERRUPTED)
        say_interrupted();
    if (code == 0)
        code = write_faults(t);
    if (code)
        return code;
    trying_disturb(t);
    if (exit_code_of(t) == EXIT_INTERRUPTED)
        say_interrupted();
    code = report(t);
    return code ? code : exit_code_of(t);
}

static int main_try(const struct arguments *a) {
    struct trying *t = mem_new(struct trying);
    const char *out = arguments_value(a, "--out");
    bool ci = arguments_value(a, "--ci");
    if (ci)
        pipeline_begin(&t->pipeline, out ? out : "runs");
    int code = try_it(t, a);
    if (ci)
        tell_pipeline(t, code);
    code = pipeline_end(&t->pipeline, "try", "try", code);
    plan_free(t->plan);
    scenario_free(t->base);
    folder_close(&t->dir);
    arena_fini(&t->arena);
    free(t);
    return code;
}

const struct verb verb_try = {
    .name = "try",
    .usage = "try [options] -- CMD...",
    .summary =
        "run the command that you type today: once without faults, then through five disasters",
    .example = "try -- rankrun --nproc-per-node 2 ranktrain --steps=400 --compute-ms=25",
    .options = options,
    .run = main_try,
};
