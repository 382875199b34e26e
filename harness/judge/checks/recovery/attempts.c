#include "harness/judge/checks/recovery/attempts.h"

#include "base/str.h"

#include <signal.h>

int attempts_number(const struct round *r) {
    int64_t n = 0;
    str_to_i64(json_get_string(r->workers[0]->env, "SLURM_RESTART_COUNT", "0"), 0, INT32_MAX, &n);
    return (int)n;
}

int attempts_count(const struct rounds *rs) {
    int n = 0;
    for (size_t i = 0; i < rs->n; i++)
        n += i == 0 || attempts_number(rs->v[i]) != attempts_number(rs->v[i - 1]);
    return n;
}

static bool judge_worker(const struct trial *t, struct finding *f, const char *broken,
                         const struct worker *w) {
    const struct worker *first = t->rounds->workers[0];
    if (w->max_restarts == first->max_restarts && w->restart_count <= w->max_restarts)
        return true;
    finding_prove(f, first->start_seq, w->start_seq);
    if (w->max_restarts != first->max_restarts)
        return finding_fail(
            f, broken, finding_expected(f, "TORCHELASTIC_MAX_RESTARTS=%d", first->max_restarts),
            "rank %d on %s of round %d was given %s", w->rank, w->node, w->round,
            json_get_string(w->env, "TORCHELASTIC_MAX_RESTARTS", "(nothing)"));
    return finding_fail(
        f, broken, finding_expected(f, "no round of an attempt after restart %d", w->max_restarts),
        "round %d was started with restart count %d", w->round, w->restart_count);
}

/* An error of its own; what the scheduler ends has had a signal, or has exited as one that had. */
static bool failed_by_itself(const struct worker *w) {
    switch (w->exit_signal) {
    case 0:
        return w->exit_code && w->exit_code != 128 + SIGTERM && w->exit_code != 128 + SIGINT;
    case SIGTERM:
    case SIGKILL:
    case SIGINT:
    case SIGHUP:
        return false;
    default:
        return true;
    }
}

/* The worker that failed with all restarts of its attempt used, and no fault to blame. */
static const struct worker *spent_by(const struct trial *t, const struct round *r) {
    const struct worker *w = round_failed(r);
    if (!w || !r->complete || !failed_by_itself(w) || incidents_ended(t->incidents, r))
        return NULL;
    return w->restart_count >= w->max_restarts ? w : NULL;
}

/* A further step of the same script has an id of its own, and counts from 0. */
static bool begins_anew(const struct round *a, const struct round *b) {
    const struct worker *v = a->workers[0], *w = b->workers[0];
    return round_failed(a) &&
           (w->restart_count < v->restart_count || !str_eq(v->run_id, w->run_id));
}

static bool judge_change(const struct trial *t, struct finding *f, const char *broken,
                         const struct round *a, const struct round *b) {
    int from = attempts_number(a), to = attempts_number(b);
    const struct worker *spent = from != to ? spent_by(t, a) : NULL;
    finding_prove(f, spent ? spent->exit_seq : a->workers[0]->start_seq, b->workers[0]->start_seq);
    if (from == to && begins_anew(a, b))
        return finding_fail(
            f, broken,
            finding_expected(f, "restarts of an attempt are counted from its beginning to its end"),
            "round %d of attempt %d began with restart count %d, after round %d had failed with %d",
            b->number, to, b->workers[0]->restart_count, a->number, a->workers[0]->restart_count);
    if (spent)
        return finding_fail(
            f, broken,
            finding_expected(f, "a job whose max_restarts, %d, are used has failed",
                             spent->max_restarts),
            "attempt %d was begun after rank %d on %s had failed in round %d, the last restart of "
            "attempt %d: who requeues what fails restarts it without end",
            to, spent->rank, spent->node, a->number, from);
    f->evidence[0] = 0;
    return true;
}

static int most_used(const struct rounds *rs) {
    int most = 0;
    for (size_t i = 0; i < rs->workers_n; i++)
        if (rs->workers[i]->restart_count > most)
            most = rs->workers[i]->restart_count;
    return most;
}

bool attempts_judge(const struct trial *t, struct finding *f, const char *broken) {
    const struct rounds *rs = t->rounds;
    if (rs->workers[0]->max_restarts < 0)
        return finding_skip(f, "what the script starts tells its workers no max_restarts");
    for (size_t i = 0; i < rs->workers_n; i++)
        if (!judge_worker(t, f, broken, rs->workers[i]))
            return false;
    for (size_t i = 1; i < rs->n; i++)
        if (!judge_change(t, f, broken, rs->v[i - 1], rs->v[i]))
            return false;
    int n = attempts_count(rs);
    return finding_pass(f, "%d attempt%s, in each at most %d of %d restarts", n, n == 1 ? "" : "s",
                        most_used(rs), rs->workers[0]->max_restarts);
}
