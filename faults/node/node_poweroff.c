/* Silences a node on the wire and then kills it, so that nobody hears it die. */
#include "faults/fault.h"

/* The order matters. Killed before it is silent, the node is still heard: the kernel sends a
 * FIN for every socket. And sockets whose owners died in silence would repeat their last words for
 * minutes and keep the node's network alive: they are destroyed. */
static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int r = t->ops->silence(t->node, true, err);
    if (r == 0)
        r = t->ops->kill(t->node, err);
    if (r == 0)
        r = target_wait_end(t, err);
    return r ? r : t->ops->destroy_sockets(t->node, err);
}

const struct fault fault_node_poweroff = {
    .name = "node-poweroff",
    .summary = "a node loses power: it goes silent from one frame to the next, and then it is dead",
    .effects = EFFECT_ENDS_NODE | EFFECT_SILENCES_NODE | EFFECT_SILENT,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_SILENCE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(frames_dropped) | EVIDENCE(target_exit),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo: the node stays off until a node-start",
    .blast = "its agent, its workers, and the store if it is there; peers see no FIN, no RST",
    .example = "{when: {step: 20}, fault: node-poweroff, on: n2}",
    .inject = inject,
};
