/* store_request: one request to the store of this node, in the words of etcd's JSON gateway, as an
 * operator would make it. Blocking, each step for 2 s at most. */
#pragma once

#include "base/buf.h"
#include "faults/target.h"

/* The answer goes into ret. 0; -EPROTO with the store's own words: it refuses; or another -errno:
 * there is no answer. err is needed. */
int store_request(const struct target *t, const char *path, const char *body, struct buf *ret,
                  struct err *err);
/* The same where an answer with these words is no refusal: what is asked for is so already. */
int store_request_unless(const struct target *t, const char *path, const char *body,
                         const char *words, struct err *err);
