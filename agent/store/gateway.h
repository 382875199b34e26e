/* gateway: etcd's v3 API as its JSON gateway writes it (etcd 3.4, rpc.proto through grpc-gateway),
 * both ways: what a client sends and what a store answers, to and from the structs of kv.h.
 *
 * Keys and values are base64, 64-bit integers are strings, fields that are zero are absent. put
 * appends to a buf and cannot fail; take reads text that came from elsewhere into the arena and
 * returns 0, or -EPROTO with a sentence. */
#pragma once

#include "agent/core/kv.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* etcd's words, by the values of enum kv_target, kv_relation and kv_op_kind. */
extern const char *const gateway_targets[], *const gateway_target_fields[];
extern const char *const gateway_relations[], *const gateway_lists[];
extern const char *const gateway_requests[], *const gateway_responses[];

/* ---- transactions; a lone range, put or delete is one without compares ---- */

void gateway_put_txn(struct buf *out, const struct kv_txn *txn);
int gateway_take_txn(struct arena *a, const char *text, size_t n, struct kv_txn *ret,
                     struct err *err);
/* The body of /v3/kv/range, put or deleterange. */
int gateway_take_op(struct arena *a, const char *text, size_t n, enum kv_op_kind kind,
                    struct kv_op *ret, struct err *err);

/* What a store answers to one, written in pieces. */
struct gateway_answer {
    struct kv_txn_result result;
    bool lone; /* of a request that is no transaction */
    /* How far it is written: */
    bool begun;
    size_t at, pair;
};
/* Appends until out has max bytes or a little more: a pair is never split. Returns whether that was
 * the end. */
bool gateway_put_some(struct buf *out, struct gateway_answer *a, size_t max);
int gateway_take_txn_result(struct arena *a, const char *text, size_t n, struct kv_txn_result *ret,
                            struct err *err);

/* ---- a watch: one request, then lines, each ended by \n ---- */

struct gateway_watch {
    struct kv_bytes key, range_end;
    int64_t start_revision; /* 0: from the next change on */
};

struct gateway_line {
    int64_t revision;
    bool created, canceled;
    int64_t compact_revision; /* of a canceled watch: it asked for what is no more */
    struct kv_event *events;
    size_t n_events;
};

void gateway_put_watch(struct buf *out, const struct gateway_watch *w);
int gateway_take_watch(struct arena *a, const char *text, size_t n, struct gateway_watch *ret,
                       struct err *err);
void gateway_put_line(struct buf *out, const struct gateway_line *line);
int gateway_take_line(struct arena *a, const char *text, size_t n, struct gateway_line *ret,
                      struct err *err);

/* ---- leases ---- */

struct gateway_lease {
    int64_t id, ttl_s; /* 0: not there */
};

/* The request of grant (both fields), keepalive and revoke (id). */
void gateway_put_lease(struct buf *out, const struct gateway_lease *l);
int gateway_take_lease(struct arena *a, const char *text, size_t n, struct gateway_lease *ret,
                       struct err *err);
/* The answer: keepalive's is a stream of one, wrapped in "result". */
void gateway_put_lease_answer(struct buf *out, const struct gateway_lease *l, int64_t revision,
                              bool stream);
int gateway_take_lease_answer(struct arena *a, const char *text, size_t n,
                              struct gateway_lease *ret, struct err *err);

/* ---- the rest ---- */

void gateway_put_header(struct buf *out, int64_t revision); /* {"header":..} and no more */
/* code is gRPC's: 3 invalid argument, 5 not found, 9 failed precondition, 11 out of range, 12
 * unimplemented. */
void gateway_put_error(struct buf *out, int code, const char *message);
/* The message of an error body, or NULL when it is none. */
const char *gateway_take_error(struct arena *a, const char *text, size_t n);

/* Of such a message (text), which is etcd's, with what to do about it. */
const char *gateway_advise(struct arena *a, const char *text);
/* For what came as an answer and is none of an etcd's gateway. */
const char *gateway_describe_stranger(struct arena *a, long status, const struct buf *body);
/* text NULL: there is no message. The token is not taken any more: it may be asked for again, and
 * then the same, as nothing has been done. */
bool gateway_error_is_of_token(long status, const char *text);
/* The store has judged the request: asking again would not help. */
bool gateway_error_is_final(long status, const char *text);
