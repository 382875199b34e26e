#include "agent/store/answer.h"

#include "agent/core/keys.h"
#include "agent/store/gateway.h"
#include "agent/store/quota.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct answer_question {
    struct arena *arena;
    struct kv *kv;
    const char *body;
    size_t n;
    int64_t now_ns;
    struct quota *quota;
};

typedef void route_fn(struct answer *ret, const struct answer_question *q);

void answer_refuse(struct answer *ret, enum answer_code code, const char *message) {
    static const int statuses[] = {
        [ANSWER_INVALID] = 400,  [ANSWER_RANGE] = 400,     [ANSWER_NOT_FOUND] = 404,
        [ANSWER_NO_ROUTE] = 404, [ANSWER_CONDITION] = 412, [ANSWER_METHOD] = 405,
        [ANSWER_FULL] = 429,     [ANSWER_STRANGER] = 401,  [ANSWER_FORBIDDEN] = 403,
    };
    buf_clear(&ret->body);
    gateway_put_error(&ret->body, code == ANSWER_NO_ROUTE ? ANSWER_NOT_FOUND : (int)code, message);
    ret->status = statuses[code];
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

/* ---- whose keys they are ---- */

static bool is_within(struct kv_bytes run, struct kv_bytes key, struct kv_bytes range_end) {
    bool begins = key.len >= run.len && memcmp(key.data, run.data, run.len) == 0;
    return begins && (!range_end.len ||
                      (range_end.len >= run.len && memcmp(range_end.data, run.data, run.len) == 0));
}

static void see(void *arg, const struct kv_pair *pair) {
    *(bool *)arg = true;
}

static bool run_is_there(const struct kv *kv, struct kv_bytes run) {
    static const char cur[] = "cur";
    char key[KEY_SIZE];
    bool there = false;
    if (!run.len || run.len + sizeof(cur) > sizeof(key))
        return false;
    memcpy(key, run.data, run.len);
    memcpy(key + run.len, cur, sizeof(cur) - 1);
    kv_each_in(kv, (struct kv_bytes){key, run.len + sizeof(cur) - 1}, (struct kv_bytes){"", 0}, see,
               &there);
    return there;
}

static struct kv_bytes run_of(struct kv_bytes key) {
    return (struct kv_bytes){key.data, key_run_length(key.data, key.len)};
}

bool answer_is_of_run(const struct kv *kv, struct kv_bytes key, struct kv_bytes range_end) {
    struct kv_bytes run = run_of(key);
    return run.len && is_within(run, key, range_end) && run_is_there(kv, run);
}

/* Every agent reads the quarantine, too. */
static bool is_own(struct kv_bytes run, struct kv_bytes key, struct kv_bytes range_end) {
    struct kv_bytes quarantine = kv_string(KEY_QUARANTINE_TEXT);
    bool same = key.len == quarantine.len && memcmp(key.data, quarantine.data, key.len) == 0;
    return (same && !range_end.len) || is_within(run, key, range_end);
}

static bool txn_is_of_run(const struct kv *kv, const struct kv_txn *t) {
    struct kv_bytes run = {"", 0};
    for (size_t i = 0; i < t->n_success && !run.len; i++)
        run = run_of(t->success[i].key);
    bool own = run.len > 0 && !t->n_failure;
    for (size_t i = 0; i < t->n_compares && own; i++)
        own = is_own(run, t->compares[i].key, t->compares[i].range_end);
    for (size_t i = 0; i < t->n_success && own; i++)
        own = is_own(run, t->success[i].key, t->success[i].range_end);
    return own && run_is_there(kv, run);
}

/* ---- keys ---- */

/* True: it has been refused, as it would add to what is full, or look at too much. */
static bool refuse_much(struct answer *ret, const struct answer_question *q,
                        const struct kv_txn *txn) {
    size_t n = txn->n_compares + txn->n_success + txn->n_failure;
    size_t cost = n * (kv_count(q->kv) + 1); /* at most: mostly that is enough to know */
    cost = cost > ANSWER_COST_MAX ? kv_txn_cost(q->kv, txn) : cost;
    const char *why = q->quota ? quota_refuses(q->quota, q->kv, txn, q->now_ns) : NULL;
    char text[160];
    if (cost > ANSWER_COST_MAX) {
        snprintf(text, sizeof(text),
                 "this request looks at %zu keys, and at most %d may be asked for at once: ask for "
                 "them in parts, with limit",
                 cost, ANSWER_COST_MAX);
        answer_refuse(ret, ANSWER_INVALID, text);
        return true;
    }
    if (!why)
        return false;
    ret->refused_full = true;
    answer_refuse(ret, ANSWER_FULL, why);
    return true;
}

static void answer_kv(struct answer *ret, const struct answer_question *q, const struct kv_txn *txn,
                      bool lone) {
    note_ops(ret, txn->success, txn->n_success);
    note_ops(ret, txn->failure, txn->n_failure);
    if (refuse_much(ret, q, txn))
        return;
    ret->hold = arena_new(&ret->arena, struct kv_hold);
    *ret->hold = (struct kv_hold){0};
    ret->rest = (struct gateway_answer){.lone = lone};
    int rc = kv_txn_hold(q->kv, txn, &ret->arena, ret->hold, &ret->rest.result, NULL);
    if (rc == KV_OK) {
        ret->of_run = ret->asks_run && txn_is_of_run(q->kv, txn);
        ret->more = !answer_more(ret, &ret->body);
    } else {
        refuse_kv(ret, rc);
    }
}

bool answer_more(struct answer *a, struct buf *out) {
    return gateway_put_some(out, &a->rest, ANSWER_PIECE);
}

void answer_fini(struct answer *a, struct kv *kv) {
    if (a->hold)
        kv_release(kv, a->hold);
    a->hold = NULL;
    arena_fini(&a->arena);
    buf_fini(&a->body);
}

static void answer_op(struct answer *ret, const struct answer_question *q, enum kv_op_kind kind) {
    struct err err = {0};
    struct kv_op op;
    if (gateway_take_op(q->arena, q->body, q->n, kind, &op, &err) < 0)
        answer_refuse(ret, ANSWER_INVALID, err.msg);
    else
        answer_kv(ret, q, &(struct kv_txn){.success = &op, .n_success = 1}, true);
}

static void answer_range(struct answer *ret, const struct answer_question *q) {
    answer_op(ret, q, KV_RANGE);
}
static void answer_put(struct answer *ret, const struct answer_question *q) {
    answer_op(ret, q, KV_PUT);
}
static void answer_delete(struct answer *ret, const struct answer_question *q) {
    answer_op(ret, q, KV_DELETE);
}

static void answer_txn(struct answer *ret, const struct answer_question *q) {
    struct err err = {0};
    struct kv_txn txn;
    if (gateway_take_txn(q->arena, q->body, q->n, &txn, &err) < 0)
        answer_refuse(ret, ANSWER_INVALID, err.msg);
    else
        answer_kv(ret, q, &txn, false);
}

static void answer_compaction(struct answer *ret, const struct answer_question *q) {
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

static bool take_lease(struct answer *ret, const struct answer_question *q,
                       struct gateway_lease *l) {
    struct err err = {0};
    if (gateway_take_lease(q->arena, q->body, q->n, l, &err) == 0)
        return true;
    answer_refuse(ret, ANSWER_INVALID, err.msg);
    return false;
}

static bool is_runs_key(struct kv_bytes key) {
    return key_is_of_a_run(key.data, key.len);
}

/* Where there are too many, those go that hold no run's key, an eighth of all at once. */
static bool has_room_for_lease(struct kv *kv) {
    return kv_lease_count(kv) < ANSWER_LEASES_MAX ||
           kv_lease_drop(kv, ANSWER_LEASES_MAX / 8, is_runs_key) > 0;
}

/* One that is there is no more. */
static void answer_grant(struct answer *ret, const struct answer_question *q) {
    struct gateway_lease l;
    if (!take_lease(ret, q, &l))
        return;
    ret->adds = true;
    if (!kv_lease_exists(q->kv, l.id) && !has_room_for_lease(q->kv)) {
        ret->refused_full = true;
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
static void answer_keepalive(struct answer *ret, const struct answer_question *q) {
    struct gateway_lease l;
    if (!take_lease(ret, q, &l))
        return;
    l.ttl_s = 0;
    if (kv_lease_keepalive(q->kv, l.id, q->now_ns, &l.ttl_s, NULL) != KV_OK)
        l.ttl_s = 0;
    gateway_put_lease_answer(&ret->body, &l, kv_revision(q->kv), true);
}

static void answer_revoke(struct answer *ret, const struct answer_question *q) {
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
                    int64_t now_ns, struct quota *quota) {
    ARENA_FINI struct arena arena = {0};
    struct answer_question q = {
        .arena = &arena, .kv = kv, .body = body, .n = n, .now_ns = now_ns, .quota = quota};
    route_fn *fn = NULL;
    for (size_t i = 0; i < sizeof(ROUTES) / sizeof(*ROUTES) && !fn; i++)
        fn = strcmp(path, ROUTES[i].path) == 0 ? ROUTES[i].answer : NULL;
    ret->status = 200;
    if (fn)
        fn(ret, &q);
    else
        answer_refuse(ret, ANSWER_NO_ROUTE, "Not Found");
}
