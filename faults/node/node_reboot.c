/* Switches a node off, and on again after a while. */
#include "faults/arguments.h"
#include "faults/node/power.h"

static const int64_t down_max_ns = 3600000000000;

static int check(const struct fault_args *a, struct err *err) {
    int64_t down_ns;
    int r = fault_duration(a, "down", "1s", down_max_ns, &down_ns, err);
    return r ? r : power_check(a, err);
}

static void course(const struct fault_args *a, struct fault_course *ret) {
    power_course(a, ret);
    if (fault_duration(a, "down", "1s", down_max_ns, &ret->lasts_ns, NULL) != 0)
        ret->lasts_ns = 1; /* refused by check */
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return power_off(t, power_is_silent(a), err);
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return power_on(t, power_wants_fresh_disk(a), err);
}

const struct fault fault_node_reboot = {
    .name = "node-reboot",
    .summary = "a node goes off, comes up again by itself and runs the same command line",
    .effects = EFFECT_ENDS_NODE | EFFECT_LOUD | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(target_exit) | EVIDENCE(agent_back),
    .params = (const struct fault_param[]){{"down", "duration", "1s", "for how long it is off"},
                                           POWER_PARAMS,
                                           {0}},
    .undo = "it is on again after `down`, or when an entry heals it",
    .blast =
        "its agent, its workers, and the store if it is there; the job takes the node in again",
    .example = "{when: {step: 20}, fault: node-reboot, with: {down: 2s, disk: fresh}, on: n2}",
    .check = check,
    .course = course,
    .inject = inject,
    .recover = recover,
};
