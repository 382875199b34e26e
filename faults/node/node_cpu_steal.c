/* Takes a node's processors away for a share of the time. */
#include "faults/arguments.h"

#include "faults/mechanism/burn.h"

#include <errno.h>

static const int64_t period_ns = 10000000;

static int read_run(const struct fault_args *a, int64_t *ret_run_ns, struct err *err) {
    int64_t ppm;
    int r = fault_share(a, "share", "50%", &ppm, err);
    if (r)
        return r;
    if (ppm > 900000)
        return err_say(err, -EINVAL,
                       "share: %s would leave this host too little to go on; write 90%% or less",
                       fault_arg(a, "share", "50%"));
    *ret_run_ns = (int64_t)((double)period_ns * (double)ppm / 1e6);
    return 0;
}

static int check(const struct fault_args *a, struct err *err) {
    int64_t run_ns;
    return read_run(a, &run_ns, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct keeper_of of = {.pid = t->pid, .pidfd = t->pidfd};
    int r = read_run(a, &of.run_ns, err);
    if (r)
        return r;
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "nothing runs on %s", t->name);
    of.stop_ns = period_ns - of.run_ns;
    r = keeper_start(&keeper_burn, &of, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return keeper_stop(&keeper_burn, t->pid, err);
}

const struct fault fault_node_cpu_steal = {
    .name = "node-cpu-steal",
    .summary = "something else computes on a node's processors for a share of the time, before it",
    .effects = EFFECT_SLOWS | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(cpu_stolen),
    .params =
        (const struct fault_param[]){
            {"share", "string", "50%", "how much of each processor's time, at most 90%"}, {0}},
    .undo = "the processors are the node's again",
    .blast = "all that runs on the same processors, other nodes of this host too: keep it short",
    .example = "{when: {step: 20}, fault: node-cpu-steal, with: {share: 40%}, on: n2, for: 2s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
