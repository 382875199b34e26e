/* Gives a node less of the processors than it could have. */
#include "faults/arguments.h"

#include "faults/mechanism/tree.h"

#include <errno.h>

/* Where there is no control group all of the node stands still for the rest of such a time. */
static const int64_t period_ns = 100000000;

static int read_percent(const struct fault_args *a, int64_t *ret, struct err *err) {
    return fault_count(a, "percent", "20", 5, 100000, ret, err);
}

static int check(const struct fault_args *a, struct err *err) {
    int64_t percent;
    return read_percent(a, &percent, err);
}

static int duty(const struct target *t, int64_t percent, struct err *err) {
    struct keeper_of of = {.pid = t->pid, .pidfd = t->pidfd};
    if (percent >= 100)
        return err_say(err, -ENOTSUP,
                       "no control group can be had here, and without one a node cannot be held to "
                       "%d%% of a processor, only to less than 100%%",
                       (int)percent);
    of.run_ns = period_ns / 100 * percent;
    of.stop_ns = period_ns - of.run_ns;
    return keeper_start(&keeper_duty_tree, &of, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int64_t percent;
    int r = read_percent(a, &percent, err);
    r = r ? r : t->ops->limit(t->node, NODE_LIMIT_CPU, percent, err);
    if (r == -ENOTSUP)
        r = duty(t, percent, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    int r = keeper_stop(&keeper_duty_tree, t->pid, err);
    return r ? r : t->ops->unlimit(t->node, NODE_LIMIT_CPU, err);
}

const struct fault fault_node_cpu = {
    .name = "node-cpu",
    .summary = "all of a node gets a share of one processor, and waits for the rest of the time",
    .effects = EFFECT_SLOWS | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .limits = 1u << NODE_LIMIT_CPU,
    .evidence = EVIDENCE(node_throttled),
    .params =
        (const struct fault_param[]){
            {"percent", "int", "20", "of one processor, for all processes of the node together"},
            {0}},
    .undo = "its processes run as before, and their control group is removed",
    .blast =
        "its agent, its workers and the store if it is there: heartbeats are late, peers wait; "
        "without control groups all of it stands still and runs in turns (SIGSTOP)",
    .example = "{when: {step: 20}, fault: node-cpu, with: {percent: 10}, on: n2, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
