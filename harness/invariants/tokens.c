/* Compares the token of each round with that of the round before. */
#include "harness/invariants/judge.h"

#include <string.h>

static void on_head(struct judge *j, const struct head_change *h) {
    if (!j->times || h->to->phase != HEAD_RUN)
        return;
    judge_risk(j, INVARIANT_tokens);
    if (!*h->to->token)
        invariant_broken(j, &invariant_tokens, "round %lld has no token", (long long)h->to->round);
    else if (strcmp(h->to->token, j->wiped.last_token) == 0)
        invariant_broken(j, &invariant_tokens, "round %lld has the token of the round before",
                         (long long)h->to->round);
}

const struct invariant invariant_tokens = {
    .name = "tokens",
    .number = "I1",
    .summary = "each round has a token of its own",
    .text = "A worker that lives on, on a machine that was suspended, is in no new world: the "
            "token of each round is not that of the one before.",
    .on_head = on_head,
};
