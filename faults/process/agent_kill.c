/* Kills an agent with SIGKILL. */
#include "faults/fault.h"

#include <signal.h>

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int r = target_signal(t, SIGKILL, err);
    return r ? r : target_wait_end(t, err);
}

static int status(const struct fault_args *a) {
    return SIGKILL;
}

const struct fault fault_agent_kill = {
    .name = "agent-kill",
    .summary = "a node's agent dies at once; its workers become orphans, and the node stays up",
    .effects = EFFECT_ENDS_AGENT | EFFECT_LOUD,
    .targets = TARGET_AGENT,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_exit),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo: the agent stays dead",
    .blast = "the workers of that node must end too; the other nodes go on without it",
    .example = "{when: {step: 20}, fault: agent-kill, on: n1}",
    .status = status,
    .inject = inject,
};
