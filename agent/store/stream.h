/* stream: the server's side of watches. One request that stays open, a line of JSON per batch.
 *
 * A stream ends when its client is gone, when it asked for what is compacted away, or when it reads
 * so slowly that more than STREAM_BACKLOG_MAX bytes wait for it; then it is told `canceled`. */
#pragma once

#include "agent/base/err.h"
#include "agent/core/kv.h"
#include "agent/store/gateway.h"

#include <stddef.h>

enum { STREAM_BACKLOG_MAX = 8 << 20 };

struct evhttp_request;
struct streams;

struct streams *streams_new(struct kv *kv); /* kv is lent */
struct streams *streams_free(struct streams *s);
size_t streams_count(const struct streams *s);

/* Takes the request over and answers `created`; events follow with the next streams_send. */
void streams_open(struct streams *s, struct evhttp_request *req, const struct gateway_watch *w);
/* Sends what has happened to those whom it concerns. */
void streams_send(struct streams *s);
