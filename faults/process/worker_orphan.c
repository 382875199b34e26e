/* Makes a worker start a process that outlives it. */
#include "faults/fault.h"

#include "faults/mechanism/orphan.h"

#include <errno.h>

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    int r = orphan_make(t->pid, t->pidfd, t->name, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return orphan_end(t->pid, t->name, err);
}

const struct fault fault_worker_orphan = {
    .name = "worker-orphan",
    .summary = "a worker has a child that outlives it, with all it has open, deaf to SIGTERM",
    .effects = EFFECT_LEAVES_PROCESS | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_TRACE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(child_escaped),
    .params = (const struct fault_param[]){{0}},
    .undo = "the child is killed, whether the worker lives or not",
    .blast = "ports and files of the worker stay open, its memory stays in use; whoever ends the "
             "worker must end the child, too",
    .example = "{when: {step: 20}, fault: worker-orphan, on: rank 1}",
    .inject = inject,
    .recover = recover,
};
