/* Changes a bit in frames and mends their checksum, so that programs get the wrong bytes. */
#include "faults/network/traffic.h"

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    ret->corrupt_mends = 1;
    return fault_share(a, "share", "1%", &ret->corrupt_ppm, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_corrupt_silent = {
    .name = "net-corrupt-silent",
    .summary = "programs are given a wrong bit by the network: the checksum is right for it",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .profile = true,
    .evidence = EVIDENCE(frames_corrupted),
    .params = (const struct fault_param[]){{"share", "string", "1%",
                                            "how many of the frames that carry something"},
                                           FAULT_TRAFFIC_PARAMS,
                                           {0}},
    .undo = "the wire leaves frames as they are",
    .blast = "whoever reads the bytes: a gradient, a parameter, a message of the store",
    .example = "{when: {step: 20}, fault: net-corrupt-silent, on: n2, with: {share: 1%, planes: "
               "data}, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
