/* Turns a disk read-only, as a file system does that has met an error (errors=remount-ro). */
#include "faults/disk/operations.h"

#include <errno.h>

/* Open files, too, and what mappings have changed. */
static int read_rule(const struct fault_args *a, struct disk_rule *ret, enum node_place *ret_place,
                     struct err *err) {
    int r = operations_read(a, "change/fsync", ret, ret_place, err);
    if (r == 0)
        ret->error = EROFS;
    return r;
}

FAULT_RULES(read_rule)

const struct fault fault_disk_readonly = {
    .name = "disk-readonly",
    .summary = "a disk turns read-only at once, as ext4 does with errors=remount-ro",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_DISK,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(disk_failed),
    .params = (const struct fault_param[]){OPERATIONS_PARAM_PATH, {0}},
    .undo = "it can be written again; what failed is the program's to do anew",
    .blast = "a save ends in the midst of it, also in files that are open; what a mapping has "
             "changed is lost, and msync says EIO; reading goes on",
    .example =
        "{when: {step: 20}, fault: disk-readonly, with: {path: \"{shared}/ckpt/**\"}, on: n1, "
        "for: 5s}",
    .check = check,
    .rule = read_rule,
    .inject = inject,
    .recover = recover,
};
