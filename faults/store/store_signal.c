/* Sends a program that serves the store a signal that it may handle or ignore. */
#include "faults/arguments.h"
#include "faults/sending.h"

#include <signal.h>

static int read_signal(const struct fault_args *a, struct err *err) {
    return fault_program_signal(a, SIGTERM, "store-freeze", err);
}

FAULT_SENDS(read_signal)

const struct fault fault_store_signal = {
    .name = "store-signal",
    .summary = "a program that serves the store is sent a signal, and ends in order, dies of it or "
               "goes on",
    .effects = EFFECT_ENDS_STORE | EFFECT_LOUD,
    .targets = TARGET_STORE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(signal_taken),
    .params = (const struct fault_param[]){{"signal", "string", "SIGTERM", "what it is sent"}, {0}},
    .undo = "nothing to undo: one that has ended stays so",
    .blast = "a store that ends in order closes its connections, and a member of an etcd hands "
             "its lead over first",
    .example = "{when: {step: 20}, fault: store-signal, with: {signal: SIGTERM}, on: store-leader}",
    .check = check,
    .status = status,
    .inject = inject,
};
