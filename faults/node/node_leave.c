/* Asks an agent to leave, with SIGTERM. */
#include "faults/fault.h"

#include <signal.h>

/* The node's process, for a fault that runs inside the node, is its agent. */
static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return target_signal(t, SIGTERM, err);
}

const struct fault fault_node_leave = {
    .name = "node-leave",
    .summary =
        "a node is asked to leave: its agent gets SIGTERM, leaves in order and ends with 143",
    .effects = EFFECT_ASKS_TO_LEAVE | EFFECT_LOUD,
    .targets = TARGET_NODE | TARGET_AGENT,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(agent_left),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo: the node does not come back by itself",
    .blast = "the job goes on with one node less; no restart is counted for it",
    .example = "{when: {step: 20}, fault: node-leave, on: n2}",
    .inject = inject,
};
