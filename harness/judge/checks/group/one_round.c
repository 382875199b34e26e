/* Looks for workers of two rounds that lived at one time. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lags.h"
#include "harness/judge/checks/spans.h"

/* The harness stamps what it receives; when its loop was late, two stamps that are closer together
 * than that may lie in the wrong order. */
static void judge_pair(const struct trial *t, struct finding *f, const struct worker *old,
                       const struct round *next) {
    if (!old->exit_ns) {
        finding_unknown(f, "One round at a time: nobody saw when a worker ended.",
                        "rank %d on %s of round %d was never seen to end; round %d began after it",
                        old->rank, old->node, old->round, next->number);
        finding_prove(f, old->start_seq, next->workers[0]->start_seq);
        return;
    }
    int64_t late = old->exit_ns - next->first_start_ns;
    const struct worker *first = next->workers[0];
    char off[40];
    if (late < lags_most_ns(t->lags, next->first_start_ns, old->exit_ns))
        finding_unknown(f, "One round at a time: the order of two stamps is not certain.",
                        "round %d began %.1f ms before rank %d on %s of round %d was seen to end, "
                        "which is less than the harness was late itself",
                        next->number, (double)late / 1e6, old->rank, old->node, old->round);
    else
        finding_fail(
            f, "One round at a time: a round starts when all workers of the last are dead.",
            "every worker of the earlier rounds has ended before the next round starts",
            "rank %d on %s of round %d started while rank %d on %s of round %d was alive "
            "(for another %.1f ms%s)",
            first->rank, first->node, next->number, old->rank, old->node, old->round,
            (double)late / 1e6, check_off_text(off, sizeof(off), old, first, WORKER_STARTS));
    finding_prove(f, first->start_seq, old->exit_seq);
}

/* Who is frozen does nothing, and counts as ended; once it runs again it must be dead within this.
 */
static const int64_t THAWED_NS = 50000000;

static bool was_frozen(const struct trial *t, const struct worker *w, int64_t start_ns) {
    for (size_t i = 0; i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        if (!in->in_force || !incident_has(in, EFFECT_STALLS_NODE) || in->t0_ns > start_ns ||
            !check_names_node(in, w->node))
            continue;
        if (!in->recovered || (w->exit_ns && w->exit_ns <= in->recovered_ns + THAWED_NS))
            return true;
    }
    return false;
}

/* A worker that had not ended when a later round began, less those that were frozen and those that
 * torchrun leaves to themselves. */
static bool outlives(const struct trial *t, const struct worker *w, const struct round *later) {
    return w->round < later->number && !was_frozen(t, w, later->first_start_ns) &&
           !check_forsaken(t, w->node, later->first_start_ns);
}

static struct span seen_to_end(const void *things, size_t at) {
    const struct worker *w = ((const struct rounds *)things)->workers[at];
    return w->exit_ns ? (struct span){w->start_ns, w->exit_ns - 1}
                      : (struct span){INT64_MAX, INT64_MIN};
}

static struct span never_seen_to_end(const void *things, size_t at) {
    const struct worker *w = ((const struct rounds *)things)->workers[at];
    return w->exit_ns ? (struct span){INT64_MAX, INT64_MIN} : (struct span){w->start_ns, INT64_MAX};
}

/* Holds every round against the workers that lived when it began, until the finding is as wanted.
 */
static void judge_workers(const struct trial *t, struct finding *f,
                          struct span (*life)(const void *things, size_t at),
                          enum finding_status until) {
    const struct rounds *rs = t->rounds;
    struct spans lives;
    spans_init(&lives, t->arena, rs->workers_n, life, rs);
    for (size_t k = 1; k < rs->n && f->status != until; k++) {
        int64_t began_ns = rs->v[k]->first_start_ns;
        for (size_t i = 0; f->status != until; i++) {
            i = spans_next(&lives, i, began_ns, began_ns);
            if (i == lives.n)
                break;
            if (outlives(t, rs->workers[i], rs->v[k]))
                judge_pair(t, f, rs->workers[i], rs->v[k]);
        }
    }
}

/* An overlap that is certain is worth more than one that is not, so those come first. */
static bool judge(const struct trial *t, struct finding *f) {
    const struct rounds *rs = t->rounds;
    if (!check_sees_rounds(t, f))
        return false;
    finding_pass(f, "%zu round%s, one after the other", rs->n, rs->n == 1 ? "" : "s");
    judge_workers(t, f, seen_to_end, FINDING_FAIL);
    if (f->status == FINDING_PASS)
        judge_workers(t, f, never_seen_to_end, FINDING_UNKNOWN);
    return f->status == FINDING_PASS;
}

const struct check check_one_round = {
    .name = "one_round",
    .summary = "no worker starts before every worker of earlier rounds has ended",
    .text =
        "Two rounds that run at once train the same model twice, write over each other's "
        "checkpoints and answer each other's connections. Judged by the starts that rankprobe "
        "reports and the ends that the kernel reports. A worker on a node that is frozen counts "
        "as ended; when the node runs again it must be dead within 50 ms.",
    .example = "rankquake run scenarios/membership/node-powered-off.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL),
    .judge = judge,
};
