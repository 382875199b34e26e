/* Resets TCP connections on the wire. */
#include "faults/network/traffic.h"

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    ret->resets = 1;
    return fault_count(a, "port", "0", 0, 65535, &ret->tcp_port, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_reset = {
    .name = "net-reset",
    .summary =
        "both ends of each connection that says something are told that the other has reset it",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_LOUD | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(connections_reset),
    .params =
        (const struct fault_param[]){
            {"port", "int", "0", "of connections to or from this TCP port only; 0: of all"},
            FAULT_TRAFFIC_PARAMS,
            {0}},
    .undo = "the wire lets connections live; those that were reset are gone",
    .blast = "collectives and requests fail with ECONNRESET; who connects again is reset again",
    .example = "{when: {step: 20}, fault: net-reset, on: n2, with: {planes: data}, for: 100ms}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
