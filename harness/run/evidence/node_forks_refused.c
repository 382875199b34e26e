/* The kernel's word that it has refused a node a new process or thread, counted in the node's
 * control group; without one, that the limits of what runs there are not what they were. */
#include "harness/run/evidence/node_limits.h"

#include "harness/run/evidence/counters.h"

static bool felt(struct bound *b) {
    struct counter *k = b->known[EVIDENCE_node_forks_refused];
    counter_look(k, b, NODE_LIMIT_PIDS, "pids.events", "max");
    return k->by_group ? k->count > 0 : node_limits_lowered(k, b);
}

static void put(const struct run_entry *a, struct json_writer *w) {
    counter_put(a->bound[0].known[EVIDENCE_node_forks_refused], w, "RLIMIT_NPROC of each process");
}

const struct evidence evidence_node_forks_refused = {
    .what = "the node was refused a new process, or each has a lower limit",
    .absent = "nothing on it wanted to start a process or thread",
    .unannounced = true,
    .begin = node_limits_begin,
    .felt = felt,
    .put = put,
};
