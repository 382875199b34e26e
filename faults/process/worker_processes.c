/* Lets a worker start no more processes, or no more threads. */
#include "faults/fault.h"

#include "base/str.h"
#include "faults/mechanism/clone_gate.h"

#include <errno.h>

/* What is refused, or -EINVAL. */
static int check(const struct fault_args *a, struct err *err) {
    const char *what = fault_arg(a, "of", "both");
    if (str_eq(what, "both"))
        return GATE_PROCESSES | GATE_THREADS;
    if (str_eq(what, "processes") || str_eq(what, "threads"))
        return what[0] == 'p' ? GATE_PROCESSES : GATE_THREADS;
    return err_say(err, -EINVAL, "of: \"%s\" is none; write processes, threads or both", what);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int what = check(a, err);
    if (what < 0)
        return what;
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    int r = clone_gate_close(t->pid, t->pidfd, (unsigned)what, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return clone_gate_open(t->pid);
}

const struct fault fault_worker_processes = {
    .name = "worker-processes",
    .summary = "a worker can start no more processes and threads: EAGAIN",
    .effects = EFFECT_HINDERS_WORKER | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_TRACE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(calls_filtered),
    .params =
        (const struct fault_param[]){
            {"of", "string", "both", "processes, threads or both: what it cannot start"}, {0}},
    .undo = "all it starts is let through again, by a filter that stays with it until it ends",
    .blast = "what it has started lives on; the next data loader, thread or shell fails. What its "
             "children start fails, too",
    .example = "{when: {step: 20}, fault: worker-processes, on: rank 1}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
