/* lifeline: what the end of a connection proves.
 *
 * A lifeline is one TCP connection from an agent to the embedded store, made for one session before
 * any worker of it is forked. The agent keeps it, its guard and every worker inherit it, and
 * nothing is ever sent on it but one message, which names the session. So its orderly end (FIN) is
 * sent by the kernel when the last of them is gone, and the store then writes the certificate that
 * a coordinator would write after `suspect` of silence. No other end proves anything: a reset, a
 * timeout or an answer that is not ours may come while workers live.
 *
 * Both sides decide here: rendezvous.h has the agent's (ACTION_LIFELINE_OPEN and what follows from
 * it), the store's are the two functions below. docs/decisions/0023-lifeline.md has the argument.
 */
#pragma once

#include "agent/core/rendezvous.h"

enum lifeline_end {
    LIFELINE_CLOSED, /* orderly: every holder is gone */
    LIFELINE_BROKEN, /* any other way */
};

/* When lifeline_certify may be applied: not before a worker that closed its copy, and was killed
 * with its guard, has run its last instruction. INT64_MAX: never. */
int64_t lifeline_due_ns(enum lifeline_end how, int64_t now_ns);

/* The transaction that counts the session as dead, or is refused because it has ended before. txn
 * points into *ret. */
struct lifeline_certificate {
    struct compare compare;
    struct op ops[2];
    union value gone;
    struct txn txn;
};
void lifeline_certify(const struct lifeline_claim *claim, struct lifeline_certificate *ret);
