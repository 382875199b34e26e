/* readers: pages that are told how a run stands, by server-sent events. Each has at most one state on its way and
 * is told the newest when he has taken it: a slow one misses some, and holds up nobody. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

struct readers;
struct evhttp_request;

enum { READERS_MAX = 64 };

/* empty: the last of them has gone. */
struct readers *readers_new(void (*empty)(void *arg), void *arg);
struct readers *readers_free(struct readers *r); /* NULL is allowed; returns NULL */
size_t readers_count(const struct readers *r);
/* The request is answered until its end; false: there are READERS_MAX. */
bool readers_add(struct readers *r, struct evhttp_request *req);
/* The newest state, an object on one line; last: none follows, and each is let go when he has it. */
void readers_tell(struct readers *r, const struct buf *object, bool last);
