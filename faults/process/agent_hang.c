/* Stops a node's agent with SIGSTOP. */
#include "faults/fault.h"

#include <errno.h>
#include <signal.h>

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return target_signal(t, SIGSTOP, err);
}

/* Whoever has ended meanwhile hangs no longer. */
static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    struct err gone = {0};
    int r = t->pidfd < 0 ? -ESRCH : target_signal(t, SIGCONT, &gone);
    if (r && r != -ESRCH && err)
        *err = gone;
    return r == -ESRCH ? 0 : r;
}

const struct fault fault_agent_hang = {
    .name = "agent-hang",
    .summary = "a node's agent is stopped (SIGSTOP); its workers run on, and nobody watches them",
    .effects = EFFECT_STALLS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_AGENT,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_stopped),
    .params = (const struct fault_param[]){{0}},
    .undo = "SIGCONT: it goes on where it stood, if it still lives",
    .blast = "the others give the node up after suspect; its workers must not go on beside theirs",
    .example = "{when: {step: 20}, fault: agent-hang, on: n1, for: 5s}",
    .inject = inject,
    .recover = recover,
};
