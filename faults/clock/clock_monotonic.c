/* Switches on a node whose clocks begin anew, as those of a machine do that has booted. */
#include "faults/arguments.h"

#include "base/sys/clock.h"

#include <errno.h>

static const int64_t uptime_max_ns = INT64_C(3650) * 86400 * 1000000000;

static int read_uptime(const struct fault_args *a, int64_t *ret_ns, struct err *err) {
    int r = fault_duration(a, "uptime", "10s", uptime_max_ns, ret_ns, err);
    if (r == 0 && *ret_ns < 1000000000)
        return err_say(err, -EINVAL, "uptime: %s is too short; write 1s or more",
                       fault_arg(a, "uptime", "10s"));
    return r;
}

static int check(const struct fault_args *a, struct err *err) {
    int64_t uptime_ns;
    return read_uptime(a, &uptime_ns, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int64_t uptime_ns;
    int r = read_uptime(a, &uptime_ns, err);
    if (r)
        return r;
    const struct node_uptime u = {.monotonic_ns = uptime_ns - clock_monotonic_ns(),
                                  .boottime_ns = uptime_ns - clock_boottime_ns()};
    return t->ops->start_at(t->node, &u, err);
}

const struct fault fault_clock_monotonic = {
    .name = "clock-monotonic",
    .summary = "a node that is off is switched on with an uptime of its own, as after a boot",
    .effects = EFFECT_STARTS_NODE | EFFECT_MOVES_CLOCK,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_UPTIME,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(uptime_moved),
    .params =
        (const struct fault_param[]){
            {"uptime", "duration", "10s", "how long it seems to have been on when it starts"}, {0}},
    .undo = "nothing to undo: the node has its uptime until it is off",
    .blast = "whatever compares monotonic times of two nodes, or with one from before a boot",
    .example = "{when: {step: 60}, fault: clock-monotonic, with: {uptime: 720h}, on: n3}",
    .check = check,
    .inject = inject,
};
