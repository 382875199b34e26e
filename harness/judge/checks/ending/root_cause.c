/* Compares the first failure that the launcher names with the kernel's order of the ends. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/own_round.h"
#include "harness/judge/checks/lags.h"

#include "base/str.h"

static const char broken[] =
    "Root cause: the launcher names the worker that failed first, not one that fell with it.";

/* Two ends that are as close as that have no order. */
static const int64_t MOMENT_NS = 20000000;

static bool is_claim(const struct record *r) {
    return r->source == SOURCE_LAUNCHER && record_is(r, "launcher") &&
           str_eq(record_text(r, "what"), "first-failure");
}

/* The worker that was told this round of the launcher's own counting. Histories of before have
 * round 0 where no restart was allowed: then it is the newest. */
static const struct worker *find(const struct rounds *rs, const char *node, int64_t rank,
                                 int64_t round) {
    for (size_t i = rs->workers_n; i-- > 0;) {
        const struct worker *w = rs->workers[i];
        if (w->rank == rank && (!node || str_eq(w->node, node)) && own_round(w) >= 0 &&
            (own_round(w) == round || !round))
            return w;
    }
    return NULL;
}

/* The worker of the round that a fault has ended before any other failed, NULL: none. */
static const struct worker *struck_first(const struct trial *t, const struct round *r,
                                         const struct incident **ret_by) {
    const struct worker *first = round_failed(r);
    for (size_t i = 0; first && i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        if (!in->in_force || !in->evidence_seq || first->exit_ns < in->fired_ns)
            continue;
        for (size_t k = 0; k < r->n; k++) {
            const struct worker *w = r->workers[k];
            if (incident_hits_worker(in, w) && worker_failed(w) &&
                w->exit_ns <= in->t0_ns + MOMENT_NS) {
                *ret_by = in;
                return w;
            }
        }
    }
    return NULL;
}

#define WRONG(w, expected, ...)                                                                    \
    (finding_prove(f, claim->seq, (w) ? (w)->exit_seq : 0),                                        \
     finding_fail(f, broken, expected, __VA_ARGS__))

static bool judge_claim(const struct trial *t, struct finding *f, const struct record *claim) {
    const char *node = record_text(claim, "of");
    long long rank = record_i64(claim, "rank", -1), round = record_i64(claim, "round", -1);
    const struct worker *w = find(t->rounds, own_node(t->history, node), rank, round), *truth;
    const struct incident *by = NULL;
    if (!w)
        return WRONG(w, "a worker of that round",
                     "the agent of %s names rank %lld on %s in its round %lld; there was none",
                     claim->node, rank, node, round);
    if (w->exit_ns && !w->exit_known) {
        check_unknown_exit(t, f, broken, w);
        return false;
    }
    if (!worker_failed(w))
        return WRONG(w, "a worker that failed", "the agent of %s names rank %lld on %s, which %s",
                     claim->node, rank, node, w->exit_ns ? "ended 0" : "was never seen to end");
    truth = struck_first(t, t->rounds->v[w->round - 1], &by);
    if (!truth || truth == w || incident_hits_worker(by, w) ||
        w->exit_ns <= truth->exit_ns + MOMENT_NS ||
        w->exit_ns - truth->exit_ns <= lags_most_ns(t->lags, truth->exit_ns, w->exit_ns))
        return true;
    const char *expected = finding_expected(f, "rank %d on %s, which %s (%s) has ended",
                                            truth->rank, truth->node, by->id, by->fault);
    char off[40];
    finding_prove(f, truth->exit_seq);
    return WRONG(w, expected, "the agent of %s names rank %lld on %s, which ended %.0f ms%s later",
                 claim->node, rank, node, (double)(w->exit_ns - truth->exit_ns) / 1e6,
                 check_off_text(off, sizeof(off), w, truth, WORKER_ENDS));
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct record *last = NULL;
    int claims = 0;
    if (!check_sees_rounds(t, f))
        return false;
    history_each(r, t->history) {
        if (!is_claim(r))
            continue;
        if (!judge_claim(t, f, r))
            return false;
        last = r;
        claims++;
    }
    if (last)
        return finding_pass(f, "%d agent%s named rank %lld on %s, rightly", claims,
                            claims == 1 ? "" : "s", (long long)record_i64(last, "rank", -1),
                            record_text(last, "of"));
    return finding_skip(f, "the launcher has named no worker as the first that failed");
}

const struct check check_root_cause = {
    .name = "root_cause",
    .summary = "the worker that the launcher calls the first failure is the one that failed first",
    .text =
        "When a job fails, each agent of rankrun names the worker by which it did. That is a "
        "claim, and it is held against what was seen: the worker was there, in that round, and "
        "ended otherwise than with 0; and where a fault of the timeline has ended a worker before "
        "any other failed, it is that one, and not a peer that fell with it.",
    .example = "rankquake run scenarios/restart/worker-fails-until-budget.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(LAUNCHER),
    .judge = judge,
};
