/* Stops a program that serves the store with SIGSTOP. */
#include "faults/fault.h"

#include <errno.h>
#include <signal.h>

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return target_signal(t, SIGSTOP, err);
}

/* Whoever has ended meanwhile stands still no longer. */
static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    int r = t->pidfd < 0 ? -ESRCH : target_signal(t, SIGCONT, err);
    return r == -ESRCH ? 0 : r;
}

const struct fault fault_store_freeze = {
    .name = "store-freeze",
    .summary = "a program that serves the store stands still (SIGSTOP): requests are taken by its "
               "kernel, and not answered",
    .effects = EFFECT_HINDERS_STORE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_STORE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_stopped),
    .params = (const struct fault_param[]){{0}},
    .undo = "SIGCONT: it answers what has come meanwhile, and its clock has gone on",
    .blast = "agents wait until their deadline; for longer than fence, and their workers are ended",
    .example = "{when: {step: 20}, fault: store-freeze, on: store, for: 1s}",
    .inject = inject,
    .recover = recover,
};
