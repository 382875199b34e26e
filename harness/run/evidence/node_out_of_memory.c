/* The kernel's word that it has killed a process of a node for want of memory, counted in the node's
 * control group; without one, that the limits of what runs there are not what they were. */
#include "harness/run/evidence/node_limits.h"

#include "harness/run/evidence/counters.h"

static bool felt(struct bound *b) {
    struct counter *k = b->known[EVIDENCE_node_out_of_memory];
    if (counter_look(k, b, NODE_LIMIT_MEMORY, "memory.oom_control", "oom_kill")) /* version 1 */
        counter_look(k, b, NODE_LIMIT_MEMORY, "memory.events", "oom_kill");
    return k->by_group ? k->count > 0 : node_limits_lowered(k, b);
}

static void put(const struct run_entry *a, struct json_writer *w) {
    counter_put(a->bound[0].known[EVIDENCE_node_out_of_memory], w, "RLIMIT_AS of each process");
}

const struct evidence evidence_node_out_of_memory = {
    .what = "a process of the node was killed for want of memory, or each has a lower limit",
    .absent = "the kernel has killed nothing on it for want of memory",
    .unannounced = true,
    .begin = node_limits_begin,
    .felt = felt,
    .put = put,
};
