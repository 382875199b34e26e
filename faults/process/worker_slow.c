/* Lets a worker run for a share of the time only: a straggler. */
#include "faults/arguments.h"

#include "faults/mechanism/keeper.h"

#include <errno.h>

static const int64_t period_max_ns = 60000000000;

static int read_duty(const struct fault_args *a, int64_t *ret_run_ns, int64_t *ret_period_ns,
                     struct err *err) {
    int64_t ppm, period_ns;
    int r = fault_share(a, "share", "50%", &ppm, err);
    r = r ? r : fault_duration(a, "period", "20ms", period_max_ns, &period_ns, err);
    if (r)
        return r;
    if (ppm >= 1000000)
        return err_say(err, -EINVAL, "share: 100%% is as fast as ever; write less");
    *ret_run_ns = (int64_t)((double)period_ns * (double)ppm / 1e6);
    *ret_period_ns = period_ns;
    return 0;
}

static int check(const struct fault_args *a, struct err *err) {
    int64_t run_ns, period_ns;
    return read_duty(a, &run_ns, &period_ns, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct keeper_of of = {.pid = t->pid, .pidfd = t->pidfd};
    int64_t period_ns = 0;
    int r = read_duty(a, &of.run_ns, &period_ns, err);
    if (r)
        return r;
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    of.stop_ns = period_ns - of.run_ns;
    r = keeper_start(&keeper_duty, &of, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return keeper_stop(&keeper_duty, t->pid, err);
}

const struct fault fault_worker_slow = {
    .name = "worker-slow",
    .summary =
        "a worker runs for a share of the time only, and stands still in between: a straggler",
    .effects = EFFECT_SLOWS | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_WORKER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_slowed),
    .params =
        (const struct fault_param[]){
            {"share", "string", "50%", "how much of the time it runs"},
            {"period", "duration", "20ms", "from one time that it runs to the next"},
            {0}},
    .undo = "it runs all the time again, if it still lives",
    .blast = "its peers wait for it in every collective",
    .example = "{when: {step: 20}, fault: worker-slow, with: {share: 30%}, on: rank 1, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
