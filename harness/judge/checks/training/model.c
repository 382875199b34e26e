/* Compares the hash of the final weights with that of the control run. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

static const char broken[] = "Model: the run ends with the model of the control run.";

/* A model counts only from a worker that ended well: a claim beside a crash is worth nothing. */
static bool judge_worker(const struct trial *t, struct finding *f, const struct worker *w,
                         const char *model) {
    if (worker_ended_well(w) && str_eq(w->model, model))
        return true;
    finding_prove(f, w->exit_seq ? w->exit_seq : w->start_seq);
    const char *expected = finding_expected(f, "model %s", model);
    if (!w->exit_ns || worker_failed(w))
        finding_fail(f, broken, expected, "rank %d on %s did not end well", w->rank, w->node);
    else if (!w->exit_known)
        check_unknown_exit(t, f, broken, w);
    else if (!*w->model && !w->lost_events)
        finding_fail(f, broken, expected, "rank %d on %s ended without naming its model", w->rank,
                     w->node);
    else if (!*w->model)
        finding_unknown(f, broken, "%lld events of rank %d on %s were lost, its model among them",
                        (long long)w->lost_events, w->rank, w->node);
    else
        finding_fail(f, broken, expected, "model %s on rank %d (%s)", w->model, w->rank, w->node);
    return false;
}

/* Of what is printed, one worker may print it for all: whoever never names a model has none to
 * name. */
static bool is_silent(const struct rounds *rs, const struct worker *w) {
    if (!rs->printed || *w->model)
        return false;
    for (size_t i = 0; i < rs->workers_n; i++)
        if (rs->workers[i]->rank == w->rank && *rs->workers[i]->model)
            return false;
    return true;
}

static const char *idle(const struct scenario *s) {
    return !s->expect.model_same ? "the scenario does not compare models" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct record *control = history_newest(t->history, SOURCE_HARNESS, "control");
    const struct round *last = t->rounds->n ? t->rounds->v[t->rounds->n - 1] : NULL;
    const char *model = control ? record_text(control, "model") : "";
    if (!*model)
        return finding_unknown(f, broken, "the control run gave no model to compare with");
    if (!last || !last->complete)
        return finding_unknown(f, broken, "there is no complete last round to take a model from");
    size_t named = 0;
    for (size_t i = 0; i < last->n; i++) {
        if (is_silent(t->rounds, last->workers[i]))
            continue;
        if (!judge_worker(t, f, last->workers[i], model))
            return false;
        named++;
    }
    if (!named)
        return judge_worker(t, f, last->workers[0], model);
    if (named == last->n)
        return finding_pass(f, "%.16s... on all %zu workers, as in the control run", model,
                            last->n);
    return finding_pass(f,
                        "%.16s... on the %zu of %zu workers that print it, as in the control run",
                        model, named, last->n);
}

const struct check check_model = {
    .name = "model",
    .summary = "the job ends with the same model as the control run",
    .text = "expect.model: same-as-undisturbed. The hash that every worker of the last round names "
            "when it is done must be the control run's, and the worker must have ended well. One "
            "sample lost or counted twice, one stale byte, and it differs.",
    .example = "expect: {model: same-as-undisturbed}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(JOB) | SOURCES(KERNEL) | SOURCES(PROBE),
    .needs_events = NEEDS_MODEL,
    .not_applicable = idle,
    .judge = judge,
};
