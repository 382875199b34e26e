/* Sends an agent a signal that it may handle or ignore. */
#include "faults/arguments.h"

#include <signal.h>
#include <sys/wait.h>

static int check(const struct fault_args *a, struct err *err) {
    return fault_program_signal(a, SIGHUP, "agent-hang", err);
}

/* Launchers leave on these, unless they were told otherwise (--signals-to-handle). */
static bool asks_to_leave(int signo) {
    return signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT;
}

static void course(const struct fault_args *a, struct fault_course *ret) {
    if (asks_to_leave(check(a, NULL)))
        ret->effects = EFFECT_ASKS_TO_LEAVE | EFFECT_LOUD;
}

static int status(const struct fault_args *a) {
    int signo = check(a, NULL);
    return signo < 0 ? -1 : W_EXITCODE(0, signo);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int signo = check(a, err);
    return signo < 0 ? signo : target_signal(t, signo, err);
}

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
