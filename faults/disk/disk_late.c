/* Lets a node see late what other nodes do to names and attributes in the directory that they share. */
#include "faults/arguments.h"
#include "faults/disk/operations.h"

#include "base/str.h"

#include <errno.h>

/* An operation of no kind: it fails none. */
static int read_rule(const struct fault_args *a, struct disk_rule *ret, enum node_place *ret_place,
                     struct err *err) {
    const char *opens = fault_arg(a, "opens", "new");
    int r = operations_read(a, "open", ret, ret_place, err);
    r = r ? r : fault_duration(a, "delay", "3s", INT64_C(3600000000000), &ret->late_ns, err);
    if (r)
        return r;
    ret->does = 0;
    ret->late_opens = str_eq(opens, "old");
    if (!ret->late_opens && !str_eq(opens, "new"))
        return err_say(err, -EINVAL, "opens: %.40s is neither new nor old", opens);
    if (*ret_place != NODE_SHARED)
        return err_say(err, -EINVAL,
                       "path: %.100s lies on the node's own disk, where no other node changes "
                       "anything; write {shared}/...",
                       fault_arg(a, "path", OPERATIONS_PATH));
    return 0;
}

FAULT_RULES(read_rule)

const struct fault fault_disk_late = {
    .name = "disk-late",
    .summary = "a node goes on seeing names and attributes in the shared directory as they were, "
               "as through the caches of NFS",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_DISK,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(disk_late),
    .params =
        (const struct fault_param[]){
            {"delay", "duration", "3s",
             "how long what the node was last told is believed, of what others change"},
            {"opens", "string", "new",
             "what is got by opening a file or directory: new, what is there, as on NFS (close to "
             "open); or old, as with nocto"},
            OPERATIONS_PARAM_PATH,
            {0}},
    .undo = "what is there is seen at once",
    .blast =
        "a link that was renamed over still leads where it did, a name that is new is not there "
        "for who has looked for it, one that was removed is, a file has its old size and time; "
        "with opens: old its old bytes, too",
    .example =
        "{when: {step: 20}, fault: disk-late, with: {delay: 2s, path: \"{shared}/ckpt/**\"}, "
        "on: n1, for: 5s}",
    .check = check,
    .rule = read_rule,
    .inject = inject,
    .recover = recover,
};
