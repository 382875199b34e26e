/* Lets a program that serves the store stand still over and over, so that its answers come late. */
#include "faults/arguments.h"

#include "faults/mechanism/keeper.h"

#include <errno.h>

/* Our own client must see one whole time in which it stands still while it looks. */
static const int64_t delay_max_ns = 1000000000, run_max_ns = 500000000;

static int read_duty(const struct fault_args *a, struct keeper_of *ret, struct err *err) {
    int64_t delay_ns, run_ns;
    int r = fault_duration(a, "delay", "100ms", delay_max_ns, &delay_ns, err);
    r = r ? r : fault_duration(a, "run", "10ms", run_max_ns, &run_ns, err);
    if (r)
        return r;
    ret->stop_ns = delay_ns;
    ret->run_ns = run_ns;
    return 0;
}

static int check(const struct fault_args *a, struct err *err) {
    struct keeper_of of;
    return read_duty(a, &of, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct keeper_of of = {.pid = t->pid, .pidfd = t->pidfd};
    int r = read_duty(a, &of, err);
    if (r)
        return r;
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    r = keeper_start(&keeper_duty, &of, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return keeper_stop(&keeper_duty, t->pid, err);
}

const struct fault fault_store_slow = {
    .name = "store-slow",
    .summary = "a program that serves the store answers late: it stands still over and over, and "
               "takes what has come in between",
    .effects = EFFECT_HINDERS_STORE | EFFECT_SLOWS | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_STORE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(answers_late) | EVIDENCE(target_slowed),
    .params =
        (const struct fault_param[]){
            {"delay", "duration", "100ms",
             "how long it stands still at a time, and so by how much an answer is late at most; "
             "1s at most"},
            {"run", "duration", "10ms", "how long it then answers; 500ms at most"},
            {0}},
    .undo = "it runs all the time again, if it still lives",
    .blast = "whoever asks it waits; of an etcd of several members also the others, where it leads",
    .example = "{when: {step: 20}, fault: store-slow, on: store, with: {delay: 300ms}, for: 2s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
