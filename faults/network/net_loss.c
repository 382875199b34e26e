/* Loses frames on the wire, one by one or in bursts. */
#include "faults/network/traffic.h"

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    int r = fault_share(a, "share", "1%", &ret->loss_ppm, err);
    return r ? r : fault_count(a, "burst", "1", 1, 10000, &ret->burst, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_loss = {
    .name = "net-loss",
    .summary = "frames between groups of nodes are lost, each for itself or several in a row",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(frames_lost),
    .params =
        (const struct fault_param[]){
            {"share", "string", "1%", "how many of all frames are lost"},
            {"burst", "int", "1",
             "how many in a row, on average (Gilbert-Elliott); 1: each is drawn for itself"},
            FAULT_TRAFFIC_PARAMS,
            {0}},
    .undo = "the wire passes every frame again",
    .blast = "TCP sends again what was lost, later each time; UDP loses it",
    .example = "{when: {step: 20}, fault: net-loss, on: n2, with: {share: 5%}, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
