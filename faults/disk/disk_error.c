/* Lets operations on a disk fail. */
#include "faults/arguments.h"
#include "faults/disk/operations.h"

static int read_rule(const struct fault_args *a, struct disk_rule *ret, enum node_place *ret_place,
                     struct err *err) {
    int r = operations_read(a, "write/fsync", ret, ret_place, err);
    return r ? r : operations_error(a, "EIO", &ret->error, err);
}

FAULT_RULES(read_rule)

const struct fault fault_disk_error = {
    .name = "disk-error",
    .summary = "what a node's programs do to a disk fails, from the n-th operation of a kind and a "
               "path on",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_CALLS,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(disk_failed),
    .params =
        (const struct fault_param[]){
            {"error", "string", "EIO",
             "EIO, ENOSPC, EDQUOT, ESTALE, EROFS, ENOTCONN, ETIMEDOUT or EACCES"},
            OPERATIONS_PARAM_OP("write/fsync"),
            OPERATIONS_PARAM_PATH,
            OPERATIONS_PARAMS_WHICH,
            {0}},
    .undo = "operations are made again; what failed is the program's to do anew",
    .blast = "a save ends in the midst of it; error EROFS with op change is a disk that went "
             "read-only, ENOTCONN with any one that is gone",
    .example = "{when: {step: 20}, fault: disk-error, with: {error: EIO, op: fsync, path: "
               "\"{shared}/ckpt/**\"}, on: n1, for: 5s}",
    .check = check,
    .rule = read_rule,
    .inject = inject,
    .recover = recover,
};
