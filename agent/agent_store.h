/* agent_store: the half of the shell that talks to the store: requests of the core become requests
 * of agent/store, answers become events. */
#pragma once

#include "agent/core/rendezvous.h"
#include "base/err.h"
#include "base/sys/loop.h"

#include <stdbool.h>

struct agent_store;
struct options;

/* Called from the loop, never from inside agent_store_do. The event lives during the call. */
typedef void agent_event_fn(void *arg, const struct event *e);

/* Finds the store's place: in this process; elsewhere, at the endpoint; or at the endpoint and in
 * this process, when the endpoint's host is this one and nobody serves there yet. Returns NULL with
 * err: the endpoint's name is not known, libcurl is missing
 * where it is needed. */
struct agent_store *agent_store_new(struct loop *l, const struct options *o, agent_event_fn *fn,
                                    void *arg, struct err *err);
struct agent_store *agent_store_free(struct agent_store *s); /* NULL is allowed; returns NULL */

/* Does a SNAPSHOT, WATCH, UNWATCH, TXN, LEASE_GRANT, LEASE_KEEPALIVE or BEAT. timeout_ms: after
 * which a request without an answer is ended and its connection dropped. */
void agent_store_do(struct agent_store *s, const struct action *a, int64_t timeout_ms);

bool agent_store_is_hosted(const struct agent_store *s); /* others reach it through this process */
/* "the store at 10.0.0.1:29400", for messages. */
const char *agent_store_place(const struct agent_store *s);
/* What went wrong last between us and it, "" when nothing has. */
const char *agent_store_trouble(const struct agent_store *s);
