/* Drops long frames and tells nobody: a path whose MTU is smaller than the cards say. */
#include "faults/network/traffic.h"

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    return fault_count(a, "mtu", "1400", 68, 65535, &ret->mtu_bytes, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_mtu = {
    .name = "net-mtu",
    .summary = "long packets between groups of nodes vanish, short ones pass: a black hole of the "
               "path's MTU",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .profile = true,
    .evidence = EVIDENCE(frames_oversize),
    .params = (const struct fault_param[]){{"mtu", "int", "1400",
                                            "the longest IP packet that passes, in bytes"},
                                           FAULT_TRAFFIC_PARAMS,
                                           {0}},
    .undo = "the wire passes long packets again",
    .blast = "connections open and small messages pass; the first large one hangs its connection",
    .example = "{when: {step: 20}, fault: net-mtu, on: n2, with: {mtu: 600}, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
