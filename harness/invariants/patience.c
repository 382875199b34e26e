/* Measures how long an agent bears a store that takes no writes. */
#include "harness/invariants/judge.h"

/* Its time begins with the first refusal; a new try, and one in a new session, has suspect beyond
 * it. Clocks may run 1 % slow. Who has slept begins to count again, and who ends its workers first
 * is on its way. */
static void on_denied(struct judge *j, int node) {
    const struct judged_node *n = judge_node(j, node);
    int64_t limit_ns = n->wrote ? j->job.give_up_ns : j->job.join_timeout_ns;
    int64_t since_ns = n->denied_ns, slept_ns = n->stopped_until_ns;
    since_ns = slept_ns > since_ns ? slept_ns : since_ns;
    since_ns = n->stall_until_ns > since_ns ? n->stall_until_ns : since_ns;
    judge_risk(j, INVARIANT_patience);
    int64_t most_ns = limit_ns + 3 * j->job.timing.suspect_ns + 1000 * JUDGE_MS;
    if (!n->group.alive && j->now_ns - since_ns > most_ns)
        invariant_broken(j, &invariant_patience,
                         "n%d still asks, %lld ms after the store has refused all that it would "
                         "write; it was to give up after %lld ms",
                         node, (long long)((j->now_ns - n->denied_ns) / JUDGE_MS),
                         (long long)(limit_ns / JUDGE_MS));
}

const struct invariant invariant_patience = {
    .name = "patience",
    .number = "I5",
    .summary = "a store that writes nothing is given up in time, whatever else it answers",
    .text = "An agent none of whose writes is done any more ends after give_up, one none of whose "
            "ever was after join_timeout, also while its reads are answered and its leases live.",
    .on_denied = on_denied,
};
