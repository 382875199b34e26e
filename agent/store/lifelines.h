/* lifelines: the store's side of lifelines (agent/core/lifeline.h).
 *
 *     POST /v3/rankrun/lifeline   {"run_id","inc","uid","revision","from","to"}
 *
 * is the only thing ever sent on such a connection. It is not answered, because an answer that
 * nobody reads would turn the end of the connection into a reset. What is wrong is answered, and is
 * no lifeline then. from and to are the ends of the connection as the client sees them: where the
 * store sees others, somebody in between can end it while the workers live, and its end is not
 * believed. */
#pragma once

#include "agent/core/lifeline.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sys/loop.h"

#define LIFELINE_PATH "/v3/rankrun/lifeline"

struct crowd;
struct evhttp_request;
struct kv;
struct lifelines;

/* kv and crowd are lent; written is called after a certificate was written. */
struct lifelines *lifelines_new(struct loop *l, struct kv *kv, struct crowd *crowd,
                                void (*written)(void *arg), void *arg);
struct lifelines *lifelines_free(struct lifelines *s); /* NULL is allowed; returns NULL */
size_t lifelines_count(const struct lifelines *s);     /* that are open */

/* Keeps the request's connection. -EINVAL with a sentence: the request is the caller's to answer.
 */
int lifelines_take(struct lifelines *s, struct evhttp_request *req, const char *body, size_t n,
                   struct err *err);

/* The whole request, as the client sends it. token: of the store, NULL: it wants none. */
struct lifeline_ends {
    const char *from, *to;
};
void lifelines_put_request(struct buf *out, const char *run_id, const struct lifeline_claim *claim,
                           const struct lifeline_ends *ends, const char *token);
