/* Lets the store apply a transaction and its answer vanish, on the wire. */
#include "faults/network/traffic.h"

#include "base/str.h"

#include <errno.h>

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    const char *to = fault_arg(a, "to", "writes");
    ret->answers_to_all = str_eq(to, "all");
    if (!ret->answers_to_all && !str_eq(to, "writes"))
        return err_say(err, -EINVAL, "to: %s is neither writes nor all", to);
    return fault_count(a, "count", "1", 1, 100000, &ret->answers, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_store_answer_lost = {
    .name = "store-answer-lost",
    .summary =
        "the store applies a transaction, and who asked for it never hears so: the answer is "
        "dropped on the wire, and the connection reset",
    .effects = EFFECT_HINDERS_STORE | EFFECT_IMPAIRS_NETWORK | EFFECT_LOUD | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(answers_lost),
    .params =
        (const struct fault_param[]){
            {"count", "int", "1", "how many answers are lost, from now on"},
            {"to", "string", "writes",
             "writes: answers to transactions that were applied; all: to whatever the store was "
             "asked, but not what a watch is told"},
            {0}},
    .undo = "the wire lets all answers through",
    .blast = "who asked must read again: it cannot know whether it was applied",
    .example = "{when: {phase: join}, fault: store-answer-lost, on: n2, with: {count: 2}}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
