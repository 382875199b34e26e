/* tree_client: etcd's v2 API over HTTP. agent/core/tree.h says what may be asked. */
#pragma once

#include "agent/core/tree.h"
#include "base/err.h"
#include "base/sys/loop.h"

#include <stdint.h>

struct store_access;
struct tree_client;

/* Called once for every request that is not cancelled, from the loop, never from inside
 * tree_client_send. The answer lives during the call. */
typedef void tree_answer_fn(void *arg, uint64_t id, const struct tree_answer *answer);

/* endpoint: "host:port". access is lent, its user is not used; NULL: plain HTTP. NULL with err: it
 * has another form, or it is https without libcurl. */
struct tree_client *tree_client_new(struct loop *l, const char *endpoint,
                                    const struct store_access *access, tree_answer_fn *fn,
                                    void *arg, struct err *err);
struct tree_client *tree_client_free(struct tree_client *c); /* NULL is allowed; returns NULL */

/* Copies what it needs of q. id: the caller's, of no other request that is under way. */
void tree_client_send(struct tree_client *c, uint64_t id, const struct tree_request *q);
/* Drops it, and its connection. An id that is not under way is allowed. */
void tree_client_cancel(struct tree_client *c, uint64_t id);
/* Why the last request that was lost had no answer; "" when none was. */
const char *tree_client_trouble(const struct tree_client *c);
