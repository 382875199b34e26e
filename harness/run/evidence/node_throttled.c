/* The kernel's word that what runs on a node had to wait although a processor was free: in the
 * statistics of its control group; without one, that all of it stands still at one time and runs at
 * another. */
#include "harness/run/evidence/counters.h"
#include "base/sys/proc.h"

static bool felt(struct bound *b) {
    struct counter *k = b->known[EVIDENCE_node_throttled];
    if (counter_look(k, b, NODE_LIMIT_CPU, "cpu.stat", "nr_throttled") || k->by_group)
        return k->count > 0;
    bool stands = proc_all_stand_still(b->target.pid);
    k->count |= k->stood && !stands;
    k->stood |= stands;
    return k->count;
}

static void put(const struct run_entry *a, struct json_writer *w) {
    counter_put(a->bound[0].known[EVIDENCE_node_throttled], w, "SIGSTOP and SIGCONT in turns");
}

const struct evidence evidence_node_throttled = {
    .what = "what runs on the node was held back",
    .absent = "nothing on it wanted more of a processor than it had",
    .unannounced = true,
    .begin = counter_begin,
    .felt = felt,
    .put = put,
};
