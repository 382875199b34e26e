/* Stops a worker with SIGSTOP. */
#include "faults/fault.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* A worker as launchers start it leads a process group: its children stop with it. */
static int signal_all(const struct target *t, int signo, struct err *err) {
    if (t->pid > 0 && getpgid(t->pid) == t->pid && kill(-t->pid, signo) == 0)
        return 0;
    return target_signal(t, signo, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return signal_all(t, SIGSTOP, err);
}

/* Whoever has ended meanwhile, by the launcher's hand as a rule, hangs no longer. */
static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    struct err gone = {0};
    int r = t->pidfd < 0 ? -ESRCH : signal_all(t, SIGCONT, &gone);
    if (r && r != -ESRCH && err)
        *err = gone;
    return r == -ESRCH ? 0 : r;
}

const struct fault fault_worker_hang = {
    .name = "worker-hang",
    .summary = "a worker is stopped (SIGSTOP): it lives, answers nobody, and keeps what it holds",
    .effects = EFFECT_STOPS_WORKER | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_WORKER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_stopped),
    .params = (const struct fault_param[]){{0}},
    .undo = "SIGCONT: it goes on where it stood, if it still lives",
    .blast = "its peers wait for it until their collective's deadline, then the job restarts",
    .example = "{when: {step: 20}, fault: worker-hang, on: rank 1}",
    .inject = inject,
    .recover = recover,
};
