/* reply: answers of the embedded store on their way to who asked. A short one is sent whole; a long
 * one is written as it is read (agent/store/limits/flow.h), and shows the store as it was when it
 * was asked for. */
#pragma once

#include "agent/store/answer.h"
#include "agent/store/stream.h"

struct evhttp_request;
struct replies;

struct replies *replies_new(const struct stream_parts *of);
struct replies *replies_free(struct replies *r); /* before all connections; NULL is allowed */

/* Takes the answer over. */
void reply_send(struct replies *r, struct evhttp_request *req, struct answer *a);
/* The same of a text. */
void reply_send_text(struct evhttp_request *req, int status, const struct buf *body,
                     const char *type);
/* Keys that answers on their way to others than agents still show. */
size_t replies_held(const struct replies *r);
