/* Passes frames on twice. */
#include "faults/network/traffic.h"

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    return fault_share(a, "share", "1%", &ret->duplicate_ppm, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_duplicate = {
    .name = "net-duplicate",
    .summary = "frames between groups of nodes arrive twice",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .profile = true,
    .evidence = EVIDENCE(frames_duplicated),
    .params = (const struct fault_param[]){{"share", "string", "1%", "how many of all frames"},
                                           FAULT_TRAFFIC_PARAMS,
                                           {0}},
    .undo = "the wire passes every frame once again",
    .blast = "TCP drops the second; who uses UDP gets it twice",
    .example = "{when: {step: 20}, fault: net-duplicate, on: n2, with: {share: 10%}, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
