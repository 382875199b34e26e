/* failpoint: places of an agent at which a debug build may be held by the harness, so that a fault
 * strikes exactly there (`when: {failpoint: ..}` in a scenario). They bear the names of the marks
 * of the simulator that they lead to (harness/sim/sim.h). Of a release build they are no part.
 *
 *     certified-under-ack   an ack is about to leave the agent
 *     coordinator-unheard   a head that this agent wrote is in the store; it has not heard so yet
 *     answer-lost           the same of any other transaction but a beat
 *
 * A failpoint is told as a claim and waited at for as long as the harness holds it; with nobody to
 * tell, or nobody who waits for it, it is nothing. */
#pragma once

#include "agent/core/rendezvous.h"

#ifdef RANKRUN_FAILPOINTS
void failpoint_sending(const struct txn *t);
int64_t failpoint_head(const struct txn *t); /* the round of the head it writes; -1: none */
void failpoint_answered(int64_t head_round);
#else
static inline void failpoint_sending(const struct txn *t) {
    (void)t;
}

static inline int64_t failpoint_head(const struct txn *t) {
    (void)t;
    return -1;
}

static inline void failpoint_answered(int64_t head_round) {
    (void)head_round;
}
#endif
