/* store: the key-value store of a job, wherever it is, as asynchronous calls on the loop.
 *
 * Two implementations: local (kv in this process: --standalone) and client (HTTP: the embedded
 * store of `rankrun store`, or an etcd cluster). Requests are copied before the function returns;
 * answers come from the loop, never from inside the call that asked, and live only during the
 * callback.
 *
 * A call ends exactly once, by its callback or by store_cancel. Calls may be made and cancelled
 * from inside any callback; store_free may not be called from one. */
#pragma once

#include "agent/core/kv.h"
#include "base/err.h"
#include "base/sys/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;
struct store_access;
struct store_call;

enum store_outcome {
    STORE_ANSWERED, /* it was applied, or its compares did not hold: the result says which */
    STORE_REFUSED,  /* the store understood and refused it; nothing has changed */
    STORE_UNKNOWN,  /* no answer: it may be applied, may have been, may still be */
};

/* Exactly one of the two results is set when the outcome is STORE_ANSWERED, else why is a sentence
 * part for people ("connect to 10.0.0.1 port 29400: Connection refused"). */
struct store_reply {
    enum store_outcome outcome;
    const char *why;
    const struct kv_txn_result *txn;
    int64_t lease, ttl_s; /* grant, keepalive; ttl_s 0: there is no such lease (any more) */
};
typedef void store_reply_fn(void *arg, const struct store_reply *r);

/* What a watch has to tell: the events of one or more whole revisions, in order; at least one. Or,
 * once and last, ended: with why, and compact_revision > 0 when its start is no more. */
struct store_news {
    bool ended;
    const struct kv_event *events;
    size_t n_events;
    const char *why;
    int64_t compact_revision;
};
typedef void store_news_fn(void *arg, const struct store_news *n);

struct store_ops {
    const char *name;
    struct store_call *(*txn)(struct store *s, const struct kv_txn *txn, int64_t timeout_ms,
                              store_reply_fn *fn, void *arg);
    struct store_call *(*grant)(struct store *s, int64_t lease, int64_t ttl_s, int64_t timeout_ms,
                                store_reply_fn *fn, void *arg);
    struct store_call *(*keepalive)(struct store *s, int64_t lease, int64_t timeout_ms,
                                    store_reply_fn *fn, void *arg);
    struct store_call *(*watch)(struct store *s, struct kv_bytes key, struct kv_bytes range_end,
                                int64_t start_revision, int64_t timeout_ms, store_news_fn *fn,
                                void *arg);
    void (*cancel)(struct store_call *c);
    void (*free)(struct store *s);
};

struct store {
    const struct store_ops *ops;
};

struct store_call {
    struct store *store;
};

/* kv is lent; written (NULL is allowed) is called after each change, for whoever else shares it. */
struct store *store_local_new(struct loop *l, struct kv *kv, void (*written)(void *arg),
                              void *written_arg);
/* endpoints: "host:port", more of them separated by commas (members of one etcd cluster: the next
 * is tried when one does not answer). access is lent; NULL: plain HTTP, nobody in particular.
 * Nothing is sent yet. NULL: https without libcurl, or a bad endpoint.
 *
 * A user's token is asked for before the first call, and anew when it is no longer taken; calls
 * wait for it within their time. An etcd 3.3 is found out by the first call with one answer. */
struct store *store_client_new(struct loop *l, const char *endpoints,
                               const struct store_access *access, struct err *err);

/* Cancels what is left. NULL is allowed; returns NULL. */
static inline struct store *store_free(struct store *s) {
    if (s)
        s->ops->free(s);
    return NULL;
}

/* timeout_ms limits the call; when it has passed the connection is dropped, so that nothing can
 * arrive on it later, and the outcome is unknown. Reads are linearizable. */
static inline struct store_call *store_txn(struct store *s, const struct kv_txn *txn,
                                           int64_t timeout_ms, store_reply_fn *fn, void *arg) {
    return s->ops->txn(s, txn, timeout_ms, fn, arg);
}

/* lease 0: the store chooses an id. One that is there already is as good as a new one. */
static inline struct store_call *store_grant(struct store *s, int64_t lease, int64_t ttl_s,
                                             int64_t timeout_ms, store_reply_fn *fn, void *arg) {
    return s->ops->grant(s, lease, ttl_s, timeout_ms, fn, arg);
}

static inline struct store_call *store_keepalive(struct store *s, int64_t lease, int64_t timeout_ms,
                                                 store_reply_fn *fn, void *arg) {
    return s->ops->keepalive(s, lease, timeout_ms, fn, arg);
}

/* All changes of the range from start_revision on (0: from now on). It does not come back by itself
 * when it ends. timeout_ms is for the connection only. */
static inline struct store_call *store_watch(struct store *s, struct kv_bytes key,
                                             struct kv_bytes range_end, int64_t start_revision,
                                             int64_t timeout_ms, store_news_fn *fn, void *arg) {
    return s->ops->watch(s, key, range_end, start_revision, timeout_ms, fn, arg);
}

/* The callback will not come. The request may still take effect. NULL is allowed. */
static inline void store_cancel(struct store_call *c) {
    if (c)
        c->store->ops->cancel(c);
}
