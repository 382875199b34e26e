/* Kills a worker, with SIGKILL unless another signal is named. */
#include "faults/fault.h"

#include <signal.h>

static int check(const struct fault_args *a, struct err *err) {
    return fault_signal(a, SIGKILL, err);
}

static int status(const struct fault_args *a) {
    return check(a, NULL) == SIGKILL ? SIGKILL : -1;
}

/* With another signal than SIGKILL the worker may go on, or clean up for as long as it likes: then
 * the fault is in force when the signal is delivered. */
static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int signo = check(a, err);
    if (signo < 0)
        return signo;
    int r = target_signal(t, signo, err);
    return r || signo != SIGKILL ? r : target_wait_end(t, err);
}

const struct fault fault_worker_kill = {
    .name = "worker-kill",
    .summary = "a worker is killed by a signal and dies at once",
    .effects = EFFECT_ENDS_WORKER | EFFECT_LOUD,
    .targets = TARGET_WORKER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_exit),
    .params = (const struct fault_param[]){{"signal", "string", "SIGKILL", "the signal"}, {0}},
    .undo = "nothing to undo: the launcher starts a new worker",
    .blast = "every worker of the job: the launcher restarts them all, from the last checkpoint",
    .example = "{when: {step: 20}, fault: worker-kill, on: rank 1}",
    .check = check,
    .status = status,
    .inject = inject,
};
