#include "harness/play/outcome.h"

#include "base/str.h"
#include "harness/judge/coverage.h"
#include "harness/judge/own_checks.h"
#include "harness/judge/paces.h"
#include "harness/play/run_folder.h"
#include "reports/live.h"
#include "reports/report.h"

#include <stdlib.h>
#include <string.h>

void outcome_fini(struct outcome_of_run *o) {
    history_fini(&o->history);
    rounds_fini(&o->rounds);
    folder_close(&o->dir);
    scenario_free(o->grown);
    free(o);
}

static int64_t steps_of(const struct job_spec *job) {
    int64_t steps = 0;
    for (size_t i = 0; i < job->run_n; i++)
        if (str_starts(job->run[i], "--steps="))
            str_to_i64(job->run[i] + strlen("--steps="), 1, INT64_MAX, &steps);
    return steps;
}

static void on_seen(void *arg, const struct record *r) {
    live_record(arg, r);
}

FILE *outcome_stage(const struct suite_options *o) {
    return str_eq(o->format, "terminal") ? stdout : stderr;
}

static void take_paces(struct outcome_of_run *o, const struct scenario *s,
                       const struct suite_options *options) {
    ARENA_FINI struct arena a = {0};
    struct paces_spec spec = {.file = arena_printf(&a, "%s.paces", options->coverage),
                              .scenario = s,
                              .history = &o->history,
                              .rounds = &o->rounds,
                              .run = &o->dir,
                              .renew = options->fresh};
    struct err err = {0};
    if (paces_take(&spec, &o->verdict, &err) < 0)
        fprintf(stderr, "rankquake run: how long recoveries took is not kept: %s\n", err.msg);
}

/* A cache that cannot be written costs the comparison, not the run. */
static void take_coverage(struct outcome_of_run *o, const struct scenario *s,
                          const struct suite_options *options) {
    struct coverage_spec spec = {
        .file = options->coverage, .scenario = s, .run = &o->dir, .renew = options->fresh};
    struct err err = {0};
    if (coverage_take(&spec, &o->verdict, &err) < 0)
        fprintf(stderr, "rankquake run: which checks were answered is not kept: %s\n", err.msg);
    take_paces(o, s, options);
}

int outcome_make(struct outcome_of_run *o, const struct run_spec *given,
                 const struct suite_options *options, const char *title, struct err *err) {
    FILE *stage = outcome_stage(options);
    struct run_spec spec = *given;
    const struct scenario *s = spec.plan->scenario;
    struct report_style style = report_style_of(stage);
    int r = run_folder_put_inputs(spec.plan, &o->dir, err);
    int file = r < 0 ? r : folder_create(&o->dir, "history.jsonl", err);
    if (file < 0)
        return file;
    history_create_in(&o->history, file);
    rounds_init(&o->rounds, !s->torchrun_semantics);
    if (!options->brief && !options->wish.quiet)
        fprintf(stage, "%s\n", title);
    fflush(stage);
    struct live *live = live_new(stage, &style, title, steps_of(&s->job));
    if (options->brief)
        live_be_brief(live);
    if (options->wish.quiet)
        live_be_quiet(live);
    live_place(live, options->place, options->place_left_ns);
    live_tell(live, &options->wish, options->verb ? options->verb : "run");
    spec.folder = &o->dir;
    spec.seen = on_seen;
    spec.seen_arg = live;
    spec.ret_grown = &o->grown;
    r = run_execute(&spec, &o->history, &o->rounds, err);
    live_end(live);
    s = o->grown ? o->grown : s;
    if (r == 0 && o->history.write_error)
        r = run_folder_elsewhere(err_set(err, -o->history.write_error,
                                         "write the history of the run, %s/history.jsonl",
                                         o->dir.path),
                                 err);
    struct trial t = {.scenario = s, .history = &o->history, .rounds = &o->rounds};
    verdict_judge(&o->verdict, &t);
    if (given->control && o->history.n)
        own_checks_judge(&o->verdict, s, &o->history, file, &o->dir, true);
    if (given->control && r == 0 && options->coverage && !o->grown)
        take_coverage(o, s, options);
    BUF_FINI struct buf text = {0};
    verdict_text(&o->verdict, &text);
    int w = run_folder_write(&o->dir, "verdict.json", &text, r < 0 ? NULL : err);
    return r < 0 ? r : w;
}

int outcome_report(struct outcome_of_run *run, const struct plan *p, const struct folder *dir,
                   const struct suite_options *o, struct err *err) {
    struct recorded_run recorded = {.dir = dir->path,
                                    .folder = dir,
                                    .scenario = run->grown ? run->grown : p->scenario,
                                    .history = &run->history,
                                    .rounds = &run->rounds,
                                    .verdict = &run->verdict};
    if (!run->history.n)
        return 0;
    int r = reports_write(&recorded, err);
    if (o)
        r = report_print(report_find(o->format), &recorded, stdout, r < 0 ? NULL : err) < 0 ? -1
                                                                                            : r;
    return r;
}
