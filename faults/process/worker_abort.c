/* Lets a worker abort itself, as a failed assertion does. */
#include "faults/process/crash_arguments.h"

#include <signal.h>

static int status(const struct fault_args *a) {
    return SIGABRT;
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return crash_inject(t, a, SIGABRT, err);
}

const struct fault fault_worker_abort = {
    .name = "worker-abort",
    .summary =
        "a worker calls abort, as a failed assertion does: SIGABRT from itself, and a core file",
    .effects = EFFECT_ENDS_WORKER | EFFECT_LOUD,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_TRACE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_exit),
    .params = CRASH_PARAMS,
    .undo = "nothing to undo: the launcher starts a new worker",
    .blast = "its handler of SIGABRT runs first, if it has one; then every worker is restarted",
    .example = "{when: {step: 20}, fault: worker-abort, on: rank 1}",
    .check = crash_check,
    .status = status,
    .keeps = crash_keeps,
    .inject = inject,
};
