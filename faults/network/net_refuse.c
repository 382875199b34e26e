/* Answers who wants to connect as a host does on which nobody listens. */
#include "faults/network/traffic.h"

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    ret->refuses = 1;
    return fault_count(a, "port", "0", 0, 65535, &ret->tcp_port, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_refuse = {
    .name = "net-refuse",
    .summary = "who connects is refused; what is connected goes on",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_LOUD | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(connections_refused),
    .params = (const struct fault_param[]){{"port", "int", "0",
                                            "connections to this TCP port only; 0: to all"},
                                           FAULT_TRAFFIC_PARAMS,
                                           {0}},
    .undo = "the wire lets connections through again",
    .blast = "ECONNREFUSED at once: who does not try again fails",
    .example =
        "{when: {phase: start}, fault: net-refuse, on: n2, with: {planes: bootstrap}, for: 2s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
