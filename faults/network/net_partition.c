/* Drops frames between groups of nodes on the wire. */
#include "faults/network/traffic.h"

static int nothing_passes(const struct fault_args *a, struct impairment *ret, struct err *err) {
    ret->seed = 0; /* nothing is drawn */
    return 0;
}

static int check(const struct fault_args *a, struct err *err) {
    struct impairment how;
    return fault_impairment(a, nothing_passes, &how, err);
}

static int part(const struct target *t, const struct fault_args *a, bool on, struct err *err) {
    char groups[FAULT_GROUPS_MAX];
    struct impairment how;
    int r = fault_impairment(a, nothing_passes, &how, err);
    if (r)
        return r;
    fault_groups(t, a, groups, sizeof(groups));
    return t->ops->part(t->node, groups, &how, on, err);
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
    .params = (const struct fault_param[]){FAULT_TRAFFIC_PARAMS, {0}},
    .undo = "the wire passes the frames again",
    .blast = "a node that loses the store is fenced, and given up by the others after suspect",
    .example = "{when: {step: 20}, fault: net-partition, on: n2, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
