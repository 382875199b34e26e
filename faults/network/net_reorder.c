/* Lets frames be overtaken by later ones. */
#include "faults/network/traffic.h"

static const int64_t behind_max_ns = 60000000000;

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    int r = fault_share(a, "share", "1%", &ret->reorder_ppm, err);
    return r ? r : fault_duration(a, "behind", "10ms", behind_max_ns, &ret->reorder_ns, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_reorder = {
    .name = "net-reorder",
    .summary = "frames between groups of nodes arrive behind those that were sent after them",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .profile = true,
    .evidence = EVIDENCE(frames_reordered),
    .params =
        (const struct fault_param[]){
            {"share", "string", "1%", "how many of all frames are held back"},
            {"behind", "duration", "10ms", "for how long, while others pass"},
            FAULT_TRAFFIC_PARAMS,
            {0}},
    .undo = "the wire holds no frame back; those that it holds arrive when they are due",
    .blast = "TCP asks for what it misses and takes it for lost",
    .example =
        "{when: {step: 20}, fault: net-reorder, on: n2, with: {share: 10%, behind: 5ms}, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
