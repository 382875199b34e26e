/* Switches on a node that seems to have slept: its boot clock is ahead of its monotonic one. */
#include "faults/arguments.h"

static const int64_t asleep_max_ns = INT64_C(3650) * 86400 * 1000000000;

static int read_args(const struct fault_args *a, struct node_uptime *ret, struct err *err) {
    return fault_duration(a, "asleep", "1h", asleep_max_ns, &ret->boottime_ns, err);
}

static int check(const struct fault_args *a, struct err *err) {
    struct node_uptime u = {0};
    return read_args(a, &u, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct node_uptime u = {0};
    int r = read_args(a, &u, err);
    return r ? r : t->ops->start_at(t->node, &u, err);
}

const struct fault fault_clock_boot = {
    .name = "clock-boot",
    .summary = "a node that is off is switched on as if it had been suspended: only "
               "CLOCK_BOOTTIME counts that time",
    .effects = EFFECT_STARTS_NODE | EFFECT_MOVES_CLOCK,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_UPTIME,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(uptime_moved),
    .params =
        (const struct fault_param[]){
            {"asleep", "duration", "1h", "how long it seems to have been suspended"}, {0}},
    .undo = "nothing to undo: the node has its uptime until it is off",
    .blast = "whatever takes the boot clock and the monotonic clock for one",
    .example = "{when: {step: 60}, fault: clock-boot, with: {asleep: 8h}, on: n3}",
    .check = check,
    .inject = inject,
};
