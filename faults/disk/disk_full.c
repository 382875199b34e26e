/* Leaves so much room on a disk. */
#include "faults/arguments.h"
#include "faults/disk/operations.h"

static int read_rule(const struct fault_args *a, struct disk_rule *ret, enum node_place *ret_place,
                     struct err *err) {
    int r = operations_read(a, "write", ret, ret_place, err);
    r = r ? r : operations_error(a, "ENOSPC", &ret->error, err);
    return r ? r : fault_count(a, "bytes", "0", 0, INT64_C(1) << 50, &ret->room, err);
}

FAULT_RULES(read_rule)

const struct fault fault_disk_full = {
    .name = "disk-full",
    .summary = "a disk has so many bytes left, and then what a node's programs write is refused: "
               "ENOSPC, or EDQUOT of a quota",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_CALLS,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(disk_failed),
    .params =
        (const struct fault_param[]){
            {"bytes", "int", "0",
             "how much can still be written, by all programs of the node together"},
            {"error", "string", "ENOSPC", "ENOSPC, EDQUOT or another as of disk-error"},
            OPERATIONS_PARAM_PATH,
            {0}},
    .undo = "there is room again",
    .blast = "a write that does not fit in whole fails in whole, where a file system writes a part "
             "of it first; files are made, renamed and removed as before",
    .example = "{when: {step: 20}, fault: disk-full, with: {bytes: 10, path: "
               "\"{shared}/ckpt/**\"}, on: n1, for: 5s}",
    .check = check,
    .rule = read_rule,
    .inject = inject,
    .recover = recover,
};
