/* Counts the certificates of each session. */
#include "harness/invariants/judge.h"

static void on_put(struct judge *j, const struct op *op) {
    judge_risk(j, INVARIANT_certified_once);
    if (judge_key(j, &op->key, NULL) > 1)
        invariant_broken(j, &invariant_certified_once, "gone/%s is written again", op->key.uid);
}

const struct invariant invariant_certified_once = {
    .name = "certified_once",
    .number = "I7",
    .summary = "a session is certified dead once",
    .text = "A death certificate is written with the end of its session and never again: what a "
            "late writer has to say of a session that has ended - a coordinator, a lifeline - is "
            "refused.",
    .kinds = 1u << KEY_GONE,
    .on_put = on_put,
};
