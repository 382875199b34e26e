/* tree_answer: what etcd's v2 API says, as the plain data of agent/core/tree.h. */
#pragma once

#include "agent/core/tree.h"
#include "base/arena.h"
#include "base/buf.h"

/* status: of HTTP; index: what the header X-Etcd-Index says, or "". Everything in the result is in
 * the arena. Of a WAIT a node that is gone has the value "expire" where nobody has taken it away. What is no answer of etcd's is LOST, NO_V2 or STRANGE, with the reason as its text. */
struct tree_answer tree_answer_read(struct arena *a, enum tree_verb verb, long status,
                                    const struct buf *body, const char *index);
