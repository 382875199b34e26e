/* round_line: the one line that a round gets on stderr, by the agent of group rank 0, once its
 * workers run: what the round is, why there is one, and where the time since the last one went, as
 * this agent saw it. In text the first round of a job of one node has none: there is nothing to say
 * of it. */
#pragma once

#include "agent/core/rendezvous.h"

struct round_line {
    bool own_count;   /* set before: the restart count is this node's alone, not the job's */
    int64_t began_ns; /* of the wait: this agent joined, or the round before ended; 0: not yet */
    int64_t acked_ns; /* this agent's workers of the round before were dead; 0: there were none */
    int64_t start_ns;
    int64_t round; /* that is being started, 0: none was yet */
    int restarts, max_restarts, nodes, world, group_rank;
    const char *cause;
    bool due; /* not told yet */
};

/* What a step says of the launcher's phase: CLAIM_*. Prints with CLAIM_STARTED, or with what comes
 * instead of it. */
void round_line_claim(struct round_line *l, const char *what, int64_t now_ns);
void round_line_start(struct round_line *l, const struct round_spec *r, int64_t now_ns);
