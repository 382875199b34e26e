/* Kills a child of a worker: a data loader, a compiler, a program that its shell runs. */
#include "faults/fault.h"

#include "base/sys/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

/* The oldest of those that descend from it, which is a child of its own. */
static pid_t oldest(pid_t pid) {
    pid_t *pids, found = 0;
    uint64_t ticks, first = UINT64_MAX;
    size_t n = process_list_descendants(pid, &pids);
    for (size_t i = 0; i < n; i++)
        if (process_start_ticks(pids[i], &ticks) == 0 && ticks < first) {
            first = ticks;
            found = pids[i];
        }
    free(pids);
    return found;
}

static int kill_and_wait(pid_t pid, struct err *err) {
    static const int64_t end_wait_ns = 5000000000;
    struct process p;
    int r = process_open(pid, &p, err);
    if (r)
        return r;
    r = process_signal(&p, SIGKILL);
    r = r ? r : process_wait_end(&p, end_wait_ns);
    process_close(&p);
    return r ? err_set(err, r, "kill process %d", (int)pid) : 0;
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    pid_t child = t->pid > 0 ? oldest(t->pid) : 0;
    if (!child)
        return err_say(err, -ESRCH, "%s has no child", t->name);
    int r = kill_and_wait(child, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

const struct fault fault_worker_child_kill = {
    .name = "worker-child-kill",
    .summary = "the oldest child of a worker, a data loader as a rule, is killed",
    .effects = EFFECT_HINDERS_WORKER | EFFECT_LOUD,
    .targets = TARGET_WORKER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(child_ended),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo",
    .blast = "whatever the worker makes of it: an error, a hang, another child",
    .example = "{when: {step: 20}, fault: worker-child-kill, on: rank 1}",
    .inject = inject,
};
