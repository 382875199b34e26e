/* Kills a program that serves the store; its node stays on. */
#include "faults/fault.h"

#include <signal.h>

static int status(const struct fault_args *a) {
    return SIGKILL;
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int r = target_signal(t, SIGKILL, err);
    return r ? r : target_wait_end(t, err);
}

const struct fault fault_store_kill = {
    .name = "store-kill",
    .summary = "a program that serves the store dies at once; its node stays up",
    .effects = EFFECT_ENDS_STORE | EFFECT_LOUD,
    .targets = TARGET_STORE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_exit),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo: it stays dead",
    .blast = "agents are refused; without another member of an etcd they are fenced",
    .example = "{when: {step: 20}, fault: store-kill, on: store-leader}",
    .status = status,
    .inject = inject,
};
