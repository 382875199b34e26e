#include "harness/sim/invariants/judging.h"

#include <string.h>

/* Half of the lease's least time: in it a coordinator that nothing keeps from it has renewed it. */
static const int64_t RENEWED_NS = 30000 * SIM_MS;

static bool is_led_by(const struct sim *c, const struct sim_node *n) {
    return n->core && n->stopped_until_ns <= c->now_ns &&
           strcmp(rendezvous_uid(n->core), c->lead.uid) == 0;
}

static void on_forgotten(struct sim *c) {
    int64_t since_ns = c->lead.since_ns, struck_ns = c->struck_until_ns;
    if (c->now_ns < (since_ns > struck_ns ? since_ns : struck_ns) + RENEWED_NS)
        return;
    for (int i = 0; i < c->n_nodes; i++)
        if (is_led_by(c, &c->nodes[i]))
            invariant_broken(c, &invariant_remembered,
                             "the store forgets the job, which n%d has led for %lld ms", i,
                             (long long)((c->now_ns - since_ns) / SIM_MS));
}

const struct invariant invariant_remembered = {
    .name = "remembered",
    .number = "I4",
    .summary = "the store forgets no job that somebody leads",
    .text = "The lease of a job, and with it its restarts and the numbers of its rounds, ends only "
            "when nobody has coordinated it for a long time: not while an agent holds the lead "
            "and nothing has kept it from the store for 30 seconds.",
    .on_forgotten = on_forgotten,
};
