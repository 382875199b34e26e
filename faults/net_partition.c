/* Drops frames between groups of nodes on the wire. */
#include "faults/fault.h"

#include "faults/traffic.h"

static int check(const struct fault_args *a, struct err *err) {
    int planes = fault_planes(a, err);
    return planes < 0 ? planes : 0;
}

static int part(const struct target *t, const struct fault_args *a, bool on, struct err *err) {
    char groups[FAULT_GROUPS_MAX];
    int planes = fault_planes(a, err);
    if (planes < 0)
        return planes;
    fault_groups(t, a, groups, sizeof(groups));
    return t->ops->part(t->node, groups, (unsigned)planes, on, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return part(t, a, true, err);
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return part(t, a, false, err);
}

const struct fault fault_net_partition = {
    .name = "net-partition",
    .summary = "groups of nodes, or one node and all others, cannot reach each other any more",
    .effects = EFFECT_PARTS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_SILENCE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(links_cut),
    .params =
        (const struct fault_param[]){{"groups", "groups", "(the target, and everybody else)",
                                      "which nodes can still reach each other, for example "
                                      "n0,n1|n2; replaces on; the store is called store"},
                                     {"planes", "string", "all",
                                      "which traffic is cut: store, bootstrap (MASTER_PORT), data "
                                      "(everything else), all, or several, as in store,data"},
                                     {0}},
    .undo = "the wire passes the frames again",
    .blast = "a node that loses the store is fenced, and given up by the others after suspect",
    .example = "{when: {step: 20}, fault: net-partition, on: n2, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
