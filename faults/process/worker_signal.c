/* Sends a worker a signal that it may handle or ignore. */
#include "faults/sending.h"

#include <signal.h>

static int read_signal(const struct fault_args *a, struct err *err) {
    return fault_signal(a, SIGUSR1, err);
}

FAULT_SENDS(read_signal)

const struct fault fault_worker_signal = {
    .name = "worker-signal",
    .summary = "a worker is sent a signal, and ends, stops, handles it or ignores it as it likes",
    .effects = EFFECT_ENDS_WORKER | EFFECT_LOUD,
    .targets = TARGET_WORKER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(signal_taken),
    .params = (const struct fault_param[]){{"signal", "string", "SIGUSR1", "what it is sent"}, {0}},
    .undo = "nothing to undo: a worker that is stopped stays so until a SIGCONT",
    .blast = "a signal that nobody handles ends the worker, and with it the round",
    .example = "{when: {step: 20}, fault: worker-signal, with: {signal: SIGUSR1}, on: rank 1}",
    .check = check,
    .status = status,
    .inject = inject,
};
