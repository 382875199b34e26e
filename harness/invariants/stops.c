/* Measures how workers are ended. */
#include "harness/invariants/judge.h"

#include <signal.h>

/* For the word to come round, and for SIGKILL to act. */
#define MARGIN_NS (1000 * JUDGE_MS)

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* As far as the agent can know: a round that has failed, also one before that its own is to follow.
 */
static bool has_failed(const struct judge *j, const struct judged_group *g) {
    return g->unasked || j->failure_round >= g->round || j->wiped.happened || j->others;
}

static void on_stop(struct judge *j, int node, const struct judged_stop *s) {
    const struct judged_node *n = judge_node(j, node);
    const struct judged_group *g = &n->group;
    if (!j->times || !g->alive)
        return;
    judge_risk(j, INVARIANT_stops);
    int64_t least_ns = j->job.shutdown_grace_ns;
    if (has_failed(j, g) && j->job.stop_timeout_ns < least_ns)
        least_ns = j->job.stop_timeout_ns;
    if (s->kill && !s->fenced && n->signaled < 2 && judge_has_session(j, j->inc, g->uid))
        invariant_broken(j, &invariant_stops, "n%d kills its workers of round %lld at once", node,
                         (long long)g->round);
    else if (!s->kill && s->signo != SIGTERM)
        invariant_broken(j, &invariant_stops, "n%d ends its workers with signal %d", node,
                         s->signo);
    else if (!s->kill && s->grace_ns < least_ns)
        invariant_broken(j, &invariant_stops,
                         "n%d gives its workers of round %lld %lld ms to end, not %lld", node,
                         (long long)g->round, (long long)(s->grace_ns / JUDGE_MS),
                         (long long)(least_ns / JUDGE_MS));
}

static void on_ended(struct judge *j, int node) {
    const struct judged_node *n = judge_node(j, node);
    const struct judged_group *g = &n->group;
    if (!j->times || g->life != n->life || (!g->unasked && !g->over_ns) ||
        !judge_has_session(j, j->inc, g->uid))
        return;
    bool own = g->unasked && g->failed_ns;
    int64_t grace_ns = own || (g->over_ns && j->failure_round == g->round)
                           ? j->job.stop_timeout_ns
                           : j->job.shutdown_grace_ns;
    int64_t since_ns = own ? g->failed_ns : g->over_ns;
    since_ns = later(since_ns, later(n->stopped_until_ns, n->stall_until_ns));
    since_ns = later(since_ns, own ? j->ops->quiet_ns(j->world) : judge_settled_ns(j));
    if (since_ns > j->now_ns)
        return;
    judge_risk(j, INVARIANT_stops);
    if (j->now_ns - since_ns > grace_ns + MARGIN_NS)
        invariant_broken(j, &invariant_stops,
                         "the workers of n%d live on for %lld ms after %s; they have %lld ms", node,
                         (long long)((j->now_ns - since_ns) / JUDGE_MS),
                         own ? "one has failed" : "their round was over",
                         (long long)(grace_ns / JUDGE_MS));
}

const struct invariant invariant_stops = {
    .name = "stops",
    .number = "I5",
    .summary = "workers are asked to end, have their time for it, and no more",
    .text = "Workers get SIGTERM, and SIGKILL not before the time that they have: stop_timeout "
            "after a failure, the whole shutdown grace after a change of members or a signal. At "
            "once they are killed only when the deadline has passed, the session is gone or the "
            "signal came twice. When nothing keeps the agent from it they are dead a second after "
            "that time.",
    .check = "survivors",
    .on_stop = on_stop,
    .on_ended = on_ended,
};
