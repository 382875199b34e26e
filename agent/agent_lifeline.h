/* agent_lifeline: the half of the shell that keeps the lifeline (agent/core/lifeline.h): one
 * connection to the store for a session, of which every worker gets a copy. */
#pragma once

#include "agent/agent_store.h"

struct agent_lifeline;

struct agent_lifeline *agent_lifeline_new(struct loop *l, const struct options *o,
                                          agent_event_fn *fn, void *arg);
struct agent_lifeline *agent_lifeline_free(struct agent_lifeline *l); /* NULL is allowed */

/* Does a LIFELINE_OPEN or LIFELINE_DROP; what comes of it is told later, from the loop. */
void agent_lifeline_do(struct agent_lifeline *l, const struct action *a);
/* For START: the descriptor that workers are to inherit, 0: none is open. It stays the lifeline's.
 */
int agent_lifeline_fd(const struct agent_lifeline *l);
