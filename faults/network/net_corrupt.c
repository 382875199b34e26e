/* Changes a bit in frames, which their checksum tells. */
#include "faults/network/traffic.h"

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    return fault_share(a, "share", "1%", &ret->corrupt_ppm, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_corrupt = {
    .name = "net-corrupt",
    .summary =
        "frames between groups of nodes arrive with a wrong bit, and the receiver's kernel sees it",
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
    .blast = "the kernel drops such frames (InCsumErrors in /proc/net/snmp): TCP sends them again",
    .example = "{when: {step: 20}, fault: net-corrupt, on: n2, with: {share: 5%}, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
