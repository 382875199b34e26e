#include "harness/sim/invariants/judging.h"

/* Its time begins with the first refusal; a new try, and one in a new session, has suspect beyond
 * it. Clocks may run 1 % slow. Who has slept begins to count again, and who ends its workers first
 * is on its way. */
static void on_denied(struct sim *c, int node) {
    const struct sim_node *n = &c->nodes[node];
    int64_t limit_ns = n->wrote ? c->give_up_ns : c->join_timeout_ns;
    int64_t since_ns = n->denied_ns, slept_ns = n->stopped_until_ns;
    since_ns = slept_ns > since_ns ? slept_ns : since_ns;
    since_ns = n->stall_until_ns > since_ns ? n->stall_until_ns : since_ns;
    int64_t most_ns = limit_ns + 3 * c->timing.suspect_ns + 1000 * SIM_MS;
    if (!n->group.alive && c->now_ns - since_ns > most_ns)
        invariant_broken(c, &invariant_patience,
                         "n%d still asks, %lld ms after the store has refused all that it would "
                         "write; it was to give up after %lld ms",
                         node, (long long)((c->now_ns - n->denied_ns) / SIM_MS),
                         (long long)(limit_ns / SIM_MS));
}

const struct invariant invariant_patience = {
    .name = "patience",
    .number = "I5",
    .summary = "a store that writes nothing is given up in time, whatever else it answers",
    .text = "An agent none of whose writes is done any more ends after give_up, one none of whose "
            "ever was after join_timeout, also while its reads are answered and its leases live.",
    .on_denied = on_denied,
};
