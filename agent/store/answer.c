#include "agent/store/answer.h"

#include "agent/base/json.h"
#include "agent/store/gateway.h"

#include <stdbool.h>
#include <string.h>

struct question {
    struct arena *arena;
    struct kv *kv;
    const char *body;
    size_t n;
    int64_t now_ns;
    bool full;
};

typedef void route_fn(struct answer *ret, const struct question *q);

void answer_refuse(struct answer *ret, enum answer_code code, const char *message) {
    buf_clear(&ret->body);
    gateway_put_error(&ret->body, code == ANSWER_NO_ROUTE ? ANSWER_NOT_FOUND : (int)code, message);
    switch (code) {
    case ANSWER_INVALID:
    case ANSWER_RANGE:
        ret->status = 400;
        break;
    case ANSWER_NOT_FOUND:
    case ANSWER_NO_ROUTE:
        ret->status = 404;
        break;
    case ANSWER_CONDITION:
        ret->status = 412;
        break;
    case ANSWER_METHOD:
        ret->status = 405;
        break;
    case ANSWER_FULL:
        ret->status = 429;
        break;
    case ANSWER_STRANGER:
        ret->status = 401;
        break;
    }
}

static void refuse_kv(struct answer *ret, int status) {
    bool past = status == KV_COMPACTED || status == KV_FUTURE_REVISION;
    enum answer_code code = past                               ? ANSWER_RANGE
                            : status == KV_LEASE_NOT_FOUND     ? ANSWER_NOT_FOUND
                            : status == KV_LEASE_EXISTS        ? ANSWER_CONDITION
                            : status == KV_LEASE_TTL_TOO_LARGE ? ANSWER_RANGE
                                                               : ANSWER_INVALID;
    answer_refuse(ret, code, kv_text(status));
}

static void note_ops(struct answer *ret, const struct kv_op *ops, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ret->adds = ret->adds || ops[i].kind == KV_PUT;
        ret->takes = ret->takes || ops[i].kind == KV_DELETE;
    }
}

/* True: it has been refused, as it adds something. */
static bool refuse_full(struct answer *ret, const struct question *q) {
    if (!q->full || !ret->adds)
        return false;
    answer_refuse(ret, ANSWER_FULL,
                  "this store is full: somebody writes more than jobs do; see its keys and delete "
                  "what is not theirs, or start it anew");
    return true;
}

static void answer_op(struct answer *ret, const struct question *q, enum kv_op_kind kind) {
    struct err err = {0};
    struct kv_op op;
    struct kv_txn_result result;
    if (gateway_take_op(q->arena, q->body, q->n, kind, &op, &err) < 0) {
        answer_refuse(ret, ANSWER_INVALID, err.msg);
        return;
    }
    struct kv_txn txn = {.success = &op, .n_success = 1};
    note_ops(ret, &op, 1);
    if (refuse_full(ret, q))
        return;
    int rc = kv_txn(q->kv, &txn, q->arena, &result, NULL);
    if (rc == KV_OK)
        gateway_put_op_result(&ret->body, &result);
    else
        refuse_kv(ret, rc);
}

static void answer_range(struct answer *ret, const struct question *q) {
    answer_op(ret, q, KV_RANGE);
}
static void answer_put(struct answer *ret, const struct question *q) {
    answer_op(ret, q, KV_PUT);
}
static void answer_delete(struct answer *ret, const struct question *q) {
    answer_op(ret, q, KV_DELETE);
}

static void answer_txn(struct answer *ret, const struct question *q) {
    struct err err = {0};
    struct kv_txn txn;
    struct kv_txn_result result;
    if (gateway_take_txn(q->arena, q->body, q->n, &txn, &err) < 0) {
        answer_refuse(ret, ANSWER_INVALID, err.msg);
        return;
    }
    note_ops(ret, txn.success, txn.n_success);
    note_ops(ret, txn.failure, txn.n_failure);
    if (refuse_full(ret, q))
        return;
    int rc = kv_txn(q->kv, &txn, q->arena, &result, NULL);
    if (rc == KV_OK)
        gateway_put_txn_result(&ret->body, &result);
    else
        refuse_kv(ret, rc);
}

static void answer_compaction(struct answer *ret, const struct question *q) {
    struct err err = {0};
    const struct json *j = json_parse(q->arena, q->body, q->n, &err);
    if (!j) {
        answer_refuse(ret, ANSWER_INVALID, err.msg);
        return;
    }
    int rc = kv_compact(q->kv, json_get_i64(j, "revision", 0), NULL);
    if (rc == KV_OK)
        gateway_put_header(&ret->body, kv_revision(q->kv));
    else
        refuse_kv(ret, rc);
}

static bool take_lease(struct answer *ret, const struct question *q, struct gateway_lease *l) {
    struct err err = {0};
    if (gateway_take_lease(q->arena, q->body, q->n, l, &err) == 0)
        return true;
    answer_refuse(ret, ANSWER_INVALID, err.msg);
    return false;
}

/* One that is there is no more. */
static void answer_grant(struct answer *ret, const struct question *q) {
    struct gateway_lease l;
    if (!take_lease(ret, q, &l))
        return;
    ret->adds = true;
    if (refuse_full(ret, q))
        return;
    if (kv_lease_count(q->kv) >= ANSWER_LEASES_MAX && !kv_lease_exists(q->kv, l.id)) {
        answer_refuse(ret, ANSWER_FULL, "this store has as many leases as it takes");
        return;
    }
    int rc = kv_lease_grant(q->kv, l.id, l.ttl_s, q->now_ns, &l.id, NULL);
    if (rc == KV_OK)
        gateway_put_lease_answer(&ret->body, &l, kv_revision(q->kv), false);
    else
        refuse_kv(ret, rc);
}

/* A lease that is not there is answered with an absent TTL, not with an error. */
static void answer_keepalive(struct answer *ret, const struct question *q) {
    struct gateway_lease l;
    if (!take_lease(ret, q, &l))
        return;
    l.ttl_s = 0;
    if (kv_lease_keepalive(q->kv, l.id, q->now_ns, &l.ttl_s, NULL) != KV_OK)
        l.ttl_s = 0;
    gateway_put_lease_answer(&ret->body, &l, kv_revision(q->kv), true);
}

static void answer_revoke(struct answer *ret, const struct question *q) {
    struct gateway_lease l;
    if (!take_lease(ret, q, &l))
        return;
    int rc = kv_lease_revoke(q->kv, l.id, NULL);
    if (rc == KV_OK)
        gateway_put_header(&ret->body, kv_revision(q->kv));
    else
        refuse_kv(ret, rc);
}

static const struct {
    const char *path;
    route_fn *answer;
} ROUTES[] = {
    {"/v3/kv/compaction", answer_compaction},
    {"/v3/kv/deleterange", answer_delete},
    {"/v3/kv/lease/revoke", answer_revoke}, /* etcd has it at both places */
    {"/v3/kv/put", answer_put},
    {"/v3/kv/range", answer_range},
    {"/v3/kv/txn", answer_txn},
    {"/v3/lease/grant", answer_grant},
    {"/v3/lease/keepalive", answer_keepalive},
    {"/v3/lease/revoke", answer_revoke},
};

void answer_request(struct answer *ret, struct kv *kv, const char *path, const char *body, size_t n,
                    int64_t now_ns, bool full) {
    struct arena arena = {0};
    struct question q = {
        .arena = &arena, .kv = kv, .body = body, .n = n, .now_ns = now_ns, .full = full};
    route_fn *fn = NULL;
    for (size_t i = 0; i < sizeof(ROUTES) / sizeof(*ROUTES) && !fn; i++)
        fn = strcmp(path, ROUTES[i].path) == 0 ? ROUTES[i].answer : NULL;
    ret->status = 200;
    if (fn)
        fn(ret, &q);
    else
        answer_refuse(ret, ANSWER_NO_ROUTE, "Not Found");
    arena_fini(&arena);
}
