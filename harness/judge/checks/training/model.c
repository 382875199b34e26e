/* Compares the hash that a job names of its final weights with what lies on disk, and with that of
 * the control run. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

#include <string.h>

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

/* In the control run every worker has named one, of as many. */
static bool all_name(const struct trial *t, const struct round *last) {
    const struct record *control = history_newest(t->history, SOURCE_HARNESS, "control");
    int64_t named = control ? record_i64(control, "named", 0) : 0;
    return named > 1 && named == record_i64(control, "workers", 0) && (size_t)named == last->n &&
           !check_output_has_gaps(t->history);
}

/* Of what is printed, one worker may print it for all: whoever never names a model has none to
 * name, but where all have in the control run. */
static bool is_silent(const struct trial *t, const struct round *last, const struct worker *w) {
    const struct rounds *rs = t->rounds;
    if (!rs->printed || *w->model || all_name(t, last))
        return false;
    for (size_t i = 0; i < rs->workers_n; i++)
        if (rs->workers[i]->rank == w->rank && *rs->workers[i]->model)
            return false;
    return true;
}

/* ---- as the control run ---- */

/* How many of them name it; -1: somebody should have, and does not. */
static int judge_same(const struct trial *t, struct finding *f, const struct round *last,
                      const char *model) {
    int named = 0;
    for (size_t i = 0; i < last->n; i++) {
        if (is_silent(t, last, last->workers[i]))
            continue;
        if (!judge_worker(t, f, last->workers[i], model))
            return -1;
        named++;
    }
    return named || judge_worker(t, f, last->workers[0], model) ? named : -1;
}

/* ---- as what lies on disk ---- */

static int64_t made_until(const struct round *r) {
    int64_t step = -1;
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        step = w->resume_step > step ? w->resume_step : step;
        step = w->last_step > step ? w->last_step : step;
    }
    return step;
}

/* The newest look after that round, or NULL. */
static const struct record *look_after(const struct history *h, const struct round *last) {
    const struct record *look = NULL;
    history_each(r, h) {
        if (r->source == SOURCE_DISK && record_is(r, "checkpoints") &&
            record_i64(r, "round", -1) == last->number)
            look = r;
    }
    return look;
}

/* The hash of the weights that lie there of the last step that was made; "": nobody could read any,
 * or what lies there is older. */
static const char *saved_model(const struct record *look, const struct round *last) {
    int64_t step = made_until(last);
    json_each(c, look ? record_get(look, "complete") : NULL) {
        if (json_get_i64(c, "step", -1) == step)
            return json_get_string(c, "model", "");
    }
    return "";
}

/* A worker that names another model than the one that was saved; NULL: nobody does. */
static const struct worker *contradicts(const struct round *last, const char *saved) {
    for (size_t i = 0; *saved && i < last->n; i++)
        if (*last->workers[i]->model && !str_eq(last->workers[i]->model, saved))
            return last->workers[i];
    return NULL;
}

/* What tells a long path from others is its end. */
static const char *end_of(const char *path) {
    enum { ROOM = 60 };
    size_t n = strlen(path);
    const char *slash = n > ROOM ? strchr(path + n - ROOM, '/') : NULL;
    return slash ? slash + 1 : path;
}

static bool tell_contradiction(struct finding *f, const struct record *look,
                               const struct round *last, const char *saved) {
    const struct worker *w = contradicts(last, saved);
    const char *expected =
        finding_expected(f, "model %.64s, as the weights of step %lld lie in %.60s", saved,
                         (long long)made_until(last), end_of(record_text(look, "dir")));
    finding_prove(f, look->seq, w->exit_seq ? w->exit_seq : w->start_seq);
    return finding_fail(f, "Model: the model that a job names is the one that it has saved.",
                        expected, "rank %d on %s names model %.64s", w->rank, w->node, w->model);
}

/* ---- */

static bool tell_same(struct finding *f, const struct round *last, int named, const char *model,
                      bool saved) {
    const char *by = saved ? ", and so it lies on disk"
                           : "; by the job's word alone, as no weights of the last step lie where "
                             "they can be read";
    f->loud = !saved;
    if ((size_t)named == last->n)
        return finding_pass(f, "%.16s... on all %zu workers, as in the control run%s", model,
                            last->n, by);
    return finding_pass(f,
                        "%.16s... on the %d of %zu workers that print it, as in the control run%s",
                        model, named, last->n, by);
}

static const char *named_model(const struct round *last) {
    for (size_t i = 0; i < last->n; i++)
        if (*last->workers[i]->model)
            return last->workers[i]->model;
    return "";
}

/* Nobody has said that it must be the control run's: what can be compared is. */
static bool judge_unasked(struct finding *f, const struct round *last, const char *model,
                          bool saved) {
    const char *named = last ? named_model(last) : "";
    bool other = *named && *model && !str_eq(named, model);
    f->loud = other || (*named && !saved);
    if (!*named)
        return finding_skip(f, "the scenario does not compare models, and no worker names one");
    const char *beside =
        other ? "; in the control run it is another: say expect.model, if it must be the same" : "";
    if (saved)
        return finding_pass(f, "%.16s..., as it lies on disk%s", named, beside);
    return finding_skip(f,
                        "the scenario does not compare models, and no weights of the last step lie "
                        "where they can be read, so %.16s... is the job's word alone%s",
                        named, beside);
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct record *control = history_newest(t->history, SOURCE_HARNESS, "control");
    const struct round *last = t->rounds->n ? t->rounds->v[t->rounds->n - 1] : NULL;
    const char *model = control ? record_text(control, "model") : "";
    const struct record *look = last ? look_after(t->history, last) : NULL;
    const char *saved = last ? saved_model(look, last) : "";
    if (last && contradicts(last, saved))
        return tell_contradiction(f, look, last, saved);
    if (!t->scenario->expect.model_same)
        return judge_unasked(f, last, model, *saved);
    if (!*model)
        return finding_unknown(f, broken, "the control run gave no model to compare with");
    if (!last || !last->complete)
        return finding_unknown(f, broken, "there is no complete last round to take a model from");
    int named = judge_same(t, f, last, model);
    return named >= 0 && tell_same(f, last, named, model, *saved);
}

const struct check check_model = {
    .name = "model",
    .summary = "the job ends with the same model as the control run",
    .text = "expect.model: same-as-undisturbed. The hash that every worker of the last round names "
            "when it is done must be the control run's, and the worker must have ended well. One "
            "sample lost or counted twice, one stale byte, and it differs. Of a job whose output "
            "is read "
            "not every worker need name one, but where all have in the control run. Whether that "
            "is asked "
            "or not, where the harness can read a complete checkpoint of the last step (of "
            "ranktrain's format, with a model in its manifest) its weights must have the hash that "
            "workers name: one that was copied from elsewhere, or weights that are not what was "
            "trained, show there. Where it cannot, the report says below its headline that the "
            "model is the job's word alone.",
    .example = "expect: {model: same-as-undisturbed}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(JOB) | SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(DISK),
    .needs_events = NEEDS_MODEL,
    .judge = judge,
};
