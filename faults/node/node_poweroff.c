/* Silences a node on the wire and then kills it, so that nobody hears it die. */
#include "faults/node/power.h"

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return power_off(t, true, err);
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
