/* Lets operations on a disk take longer. */
#include "faults/arguments.h"
#include "faults/disk/operations.h"

static int read_rule(const struct fault_args *a, struct disk_rule *ret, enum node_place *ret_place,
                     struct err *err) {
    int r = operations_read(a, "write/fsync", ret, ret_place, err);
    return r ? r : fault_duration(a, "delay", "100ms", INT64_C(3600000000000), &ret->delay_ns, err);
}

FAULT_RULES(read_rule)

const struct fault fault_disk_slow = {
    .name = "disk-slow",
    .summary = "each operation of a node's programs on a disk takes so much longer",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_CALLS,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(disk_slowed),
    .params =
        (const struct fault_param[]){{"delay", "duration", "100ms", "how much longer each takes"},
                                     OPERATIONS_PARAM_OP("write/fsync"),
                                     OPERATIONS_PARAM_PATH,
                                     OPERATIONS_PARAMS_WHICH,
                                     {0}},
    .undo = "operations take as long as before; those that wait go on",
    .blast = "a save takes longer, and whoever waits for it waits",
    .example = "{when: {step: 20}, fault: disk-slow, with: {delay: 50ms, path: "
               "\"{shared}/ckpt/**\"}, on: n1, for: 5s}",
    .check = check,
    .rule = read_rule,
    .inject = inject,
    .recover = recover,
};
