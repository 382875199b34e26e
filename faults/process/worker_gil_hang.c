/* Takes the interpreter lock of a worker that is a Python program. */
#include "faults/fault.h"

#include "faults/mechanism/keeper.h"

#include <errno.h>

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    const struct keeper_of of = {.pid = t->pid, .pidfd = t->pidfd, .tid = t->pid};
    int r = keeper_start(&keeper_gil, &of, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return keeper_stop(&keeper_gil, t->pid, err);
}

const struct fault fault_worker_gil_hang = {
    .name = "worker-gil-hang",
    .summary = "a Python worker's interpreter lock is held: no thread of it runs Python any more",
    .effects = EFFECT_STOPS_WORKER | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_TRACE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(lock_held),
    .params = (const struct fault_param[]){{0}},
    .undo = "its first thread gives the lock back and goes on where it stood, if it still lives",
    .blast = "heartbeats and watchdogs that are Python stand still, too; threads of libraries run",
    .example = "{when: {step: 20}, fault: worker-gil-hang, on: rank 1, for: 5s}",
    .inject = inject,
    .recover = recover,
};
