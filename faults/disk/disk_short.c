/* Lets a disk write a part of what it is given. */
#include "faults/arguments.h"
#include "faults/disk/operations.h"

static int read_rule(const struct fault_args *a, struct disk_rule *ret, enum node_place *ret_place,
                     struct err *err) {
    int r = operations_read(a, "write", ret, ret_place, err);
    return r ? r : fault_count(a, "bytes", "4096", 1, INT64_C(1) << 30, &ret->at_most, err);
}

FAULT_RULES(read_rule)

const struct fault fault_disk_short = {
    .name = "disk-short",
    .summary = "of each write a disk takes so many bytes and not more, and says so: a short write",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_DISK,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(disk_shortened),
    .params =
        (const struct fault_param[]){{"bytes", "int", "4096", "how many of each write, at most"},
                                     OPERATIONS_PARAM_PATH,
                                     OPERATIONS_PARAMS_WHICH,
                                     {0}},
    .undo = "writes are made in whole again",
    .blast =
        "whoever does not look at what write returns leaves a file that lacks something; pages "
        "of a mapping are written in whole",
    .example = "{when: {step: 20}, fault: disk-short, with: {bytes: 10, path: "
               "\"{shared}/ckpt/**\"}, on: n1, for: 5s}",
    .check = check,
    .rule = read_rule,
    .inject = inject,
    .recover = recover,
};
