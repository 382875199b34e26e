/* Lets a worker call a function that is not there. */
#include "faults/process/crash_arguments.h"

#include <signal.h>

static int status(const struct fault_args *a) {
    return SIGSEGV;
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return crash_inject(t, a, SIGSEGV, err);
}

const struct fault fault_worker_segfault = {
    .name = "worker-segfault",
    .summary =
        "a worker calls a function at the address 0: a real fault of its memory, and a core file",
    .effects = EFFECT_ENDS_WORKER | EFFECT_LOUD,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_TRACE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_exit),
    .params = CRASH_PARAMS,
    .undo = "nothing to undo: the launcher starts a new worker",
    .blast = "its handler of SIGSEGV runs first, if it has one; then every worker is restarted",
    .example = "{when: {step: 20}, fault: worker-segfault, on: rank 1}",
    .check = crash_check,
    .status = status,
    .keeps = crash_keeps,
    .inject = inject,
};
