/* Kills every process of a node; the node's kernel goes on. */
#include "faults/node/power.h"

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return power_off(t, false, err);
}

const struct fault fault_node_kill = {
    .name = "node-kill",
    .summary =
        "every process of a node dies at once; its kernel stays up, so peers see a FIN or a RST",
    .effects = EFFECT_ENDS_NODE | EFFECT_LOUD,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(target_exit),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo: the node stays off until a node-start",
    .blast = "its agent, its workers, and the store if it is there",
    .example = "{when: {step: 20}, fault: node-kill, on: n2}",
    .inject = inject,
};
