/* Switches on a node that is off. */
#include "faults/fault.h"

#include "base/str.h"

#include <errno.h>

static int check(const struct fault_args *a, struct err *err) {
    const char *disk = fault_arg(a, "disk", "kept");
    if (!str_eq(disk, "kept") && !str_eq(disk, "fresh"))
        return err_say(err, -EINVAL, "disk: %s is neither kept nor fresh", disk);
    return 0;
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int r = check(a, err);
    return r ? r : t->ops->start(t->node, str_eq(fault_arg(a, "disk", "kept"), "fresh"), err);
}

const struct fault fault_node_start = {
    .name = "node-start",
    .summary = "a node that is off is switched on and runs the same command line",
    .effects = EFFECT_STARTS_NODE,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(agent_start),
    .params =
        (const struct fault_param[]){
            {"disk", "string", "kept", "kept, or fresh: its disk is emptied"}, {0}},
    .undo = "nothing to undo: the node stays on",
    .blast = "the job may take the node in and start a new round",
    .example = "{when: {step: 60}, fault: node-start, on: n3}",
    .check = check,
    .inject = inject,
};
