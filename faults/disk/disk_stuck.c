/* Lets operations on a disk hang. */
#include "faults/arguments.h"
#include "faults/disk/operations.h"

static int read_rule(const struct fault_args *a, struct disk_rule *ret, enum node_place *ret_place,
                     struct err *err) {
    int r = operations_read(a, "write/fsync", ret, ret_place, err);
    if (r == 0)
        ret->stuck = true;
    return r;
}

FAULT_RULES(read_rule)

const struct fault fault_disk_stuck = {
    .name = "disk-stuck",
    .summary = "operations of a node's programs on a disk do not come to an end, as on a server "
               "that is gone",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_CALLS,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(disk_stuck),
    .params = (const struct fault_param[]){OPERATIONS_PARAM_OP("write/fsync"),
                                           OPERATIONS_PARAM_PATH,
                                           OPERATIONS_PARAMS_WHICH,
                                           {0}},
    .undo = "those that hang are made",
    .blast = "a save hangs, and with it whoever waits for its rank; who hangs can be killed",
    .example = "{when: {step: 20}, fault: disk-stuck, with: {op: fsync, path: "
               "\"{shared}/ckpt/**\"}, on: n1, for: 5s}",
    .check = check,
    .rule = read_rule,
    .inject = inject,
    .recover = recover,
};
