/* Sends an agent a signal that it may handle or ignore. */
#include "faults/arguments.h"
#include "faults/sending.h"

#include <signal.h>

static int read_signal(const struct fault_args *a, struct err *err) {
    return fault_program_signal(a, SIGHUP, "agent-hang", err);
}

/* Launchers leave on these, unless they were told otherwise (--signals-to-handle). */
static bool asks_to_leave(int signo) {
    return signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT;
}

static void course(const struct fault_args *a, struct fault_course *ret) {
    if (asks_to_leave(read_signal(a, NULL)))
        ret->effects = EFFECT_ASKS_TO_LEAVE | EFFECT_LOUD;
}

FAULT_SENDS(read_signal)

const struct fault fault_agent_signal = {
    .name = "agent-signal",
    .summary = "a node's agent is sent a signal, and ends, handles it or ignores it as it likes",
    .effects = EFFECT_ENDS_AGENT | EFFECT_LOUD,
    .targets = TARGET_AGENT,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(signal_taken),
    .params = (const struct fault_param[]){{"signal", "string", "SIGHUP", "what it is sent"}, {0}},
    .undo = "nothing to undo: an agent that has ended does not come back by itself",
    .blast = "a launcher passes some signals on and leaves; any other ends it, and orphans its "
             "workers",
    .example = "{when: {step: 20}, fault: agent-signal, with: {signal: SIGHUP}, on: n1}",
    .check = check,
    .course = course,
    .status = status,
    .inject = inject,
};
