/* stream: the server's side of watches. One request that stays open, a line of JSON per batch.
 *
 * Events are written as they are read (agent/store/limits/flow.h). A stream ends when its client is
 * gone, when it asked for what is compacted away, or when it reads so slowly that what it has not
 * taken is; then it is told `canceled`, if it takes that. */
#pragma once

#include "agent/core/kv.h"
#include "agent/store/gateway.h"

#include <stddef.h>

/* Ranges that are watched by others than agents: a write looks at each. */
enum { STREAM_RANGES_MAX = 128 };

struct crowd;
struct evhttp_request;
struct flow;
struct streams;

/* What answers that are written as they are read are made with; all is lent. */
struct stream_parts {
    struct kv *kv;
    struct crowd *crowd;
    struct flow *flow;
    void (*slow)(void *arg, const char *who); /* one was read too slowly, and ended */
    void *arg;
};

struct streams *streams_new(const struct stream_parts *of);
struct streams *streams_free(struct streams *s);
size_t streams_count(const struct streams *s);

/* False: there are too many of others than agents. Of who asks now, of what it asks for. */
bool streams_have_room(const struct streams *s, const struct gateway_watch *w, bool agent);
/* Takes the request over and answers `created`; events follow with the next streams_send. Whether
 * it is an agent's its connection says. */
void streams_open(struct streams *s, struct evhttp_request *req, const struct gateway_watch *w);
/* Sends what has happened to those whom it concerns. */
void streams_send(struct streams *s);
