/* Drops what asks for a connection: a firewall rule that came too late for those that are there. */
#include "faults/network/traffic.h"

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    ret->blocks = 1;
    return fault_count(a, "port", "0", 0, 65535, &ret->tcp_port, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_block = {
    .name = "net-block",
    .summary = "who connects gets no answer; what is connected goes on",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(connections_blocked),
    .params = (const struct fault_param[]){{"port", "int", "0",
                                            "connections to this TCP port only; 0: to all"},
                                           FAULT_TRAFFIC_PARAMS,
                                           {0}},
    .undo = "the wire lets connections through again",
    .blast = "whoever connects waits for its timeout, 2 min for a plain connect()",
    .example =
        "{when: {phase: start}, fault: net-block, on: n2, with: {planes: bootstrap}, for: 2s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
