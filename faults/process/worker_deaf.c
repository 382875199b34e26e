/* Makes a worker ignore a signal, whatever its program does about it. */
#include "faults/fault.h"

#include "faults/mechanism/seize.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>

static int check(const struct fault_args *a, struct err *err) {
    int signo = fault_signal(a, SIGTERM, err);
    if (signo == SIGKILL || signo == SIGSTOP)
        return err_say(err, -EINVAL, "signal: nobody can ignore %s",
                       fault_arg(a, "signal", "SIGTERM"));
    return signo;
}

/* As rt_sigaction(2) of the kernel has it: handler, flags, restorer, mask. */
static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    const uint64_t ignore[4] = {(uint64_t)(uintptr_t)SIG_IGN};
    int signo = check(a, err);
    if (signo < 0)
        return signo;
    const struct seize_call call = {.number = SYS_rt_sigaction,
                                    .args = {(unsigned long)signo, 0, 0, 8},
                                    .data = ignore,
                                    .len = sizeof(ignore),
                                    .data_arg = 1};
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    struct err why;
    long r = seize_call(t->pid, &call, &why);
    return r ? err_say(err, (int)r, "%s: %s", t->name, why.msg) : 0;
}

const struct fault fault_worker_deaf = {
    .name = "worker-deaf",
    .summary =
        "a worker ignores a signal from now on, SIGTERM by default, whatever its program says",
    .effects = EFFECT_HINDERS_WORKER | EFFECT_SILENT,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_TRACE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(signal_ignored),
    .params = (const struct fault_param[]){{"signal", "string", "SIGTERM", "what it ignores"}, {0}},
    .undo = "nothing to undo: it ends with the worker",
    .blast = "this worker alone: who stops it waits for it, and must end it by force",
    .example = "{when: {step: 20}, fault: worker-deaf, on: rank 1}",
    .check = check,
    .inject = inject,
};
