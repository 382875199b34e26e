#include "agent/store/quota.h"

#include "agent/core/keys.h"
#include "agent/core/kv.h"

enum {
    OVERHEAD = 256,   /* of a key or an event, about */
    RUN_PART = 16,    /* of what runs may have: so much one may have where little is left */
    SPARE = 16 << 20, /* that answers may hold of what is deleted */
};

static const int64_t LOOK_NS = 1000000000;

static bool is_runs(struct kv_bytes key, struct kv_bytes value) {
    return value.len <= QUOTA_VALUE_MAX && key_is_of_a_run(key.data, key.len);
}

static size_t size_of(struct kv_bytes key, struct kv_bytes value, bool runs) {
    size_t size = key.len + value.len + OVERHEAD;
    return runs && size < QUOTA_KEY_LEAST ? QUOTA_KEY_LEAST : size;
}

static void add_pair(void *arg, const struct kv_pair *pair) {
    struct quota *q = arg;
    bool runs = is_runs(pair->key, pair->value);
    *(runs ? &q->runs : &q->others) += size_of(pair->key, pair->value, runs);
}

static void look(struct quota *q, const struct kv *kv) {
    const struct quota_limits *l = &q->limits;
    q->runs = q->others = 0;
    kv_each(kv, add_pair, q);
    q->runs_full = q->runs > l->runs_max / 4 * 3;
    q->others_full = q->others > l->others_max / 4 * 3 ||
                     kv_memory(kv) > q->runs + l->others_max + l->history_max + SPARE;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

void quota_wrote(struct quota *q, struct kv *kv, size_t n) {
    const struct quota_limits *l = &q->limits;
    q->written += n + OVERHEAD;
    if (q->written < least(l->history_max, least(l->runs_max, l->others_max)) / 8)
        return;
    q->written = 0;
    int64_t whole = kv_history_from(kv, l->history_max);
    if (whole > kv_compact_revision(kv))
        kv_compact(kv, kv_history_from(kv, l->history_max / 2), NULL);
    look(q, kv);
}

void quota_deleted(struct quota *q) {
    q->looked_at_ns = INT64_MIN / 2;
}

/* ---- what is refused ---- */

static void add_size(void *arg, const struct kv_pair *pair) {
    *(size_t *)arg += size_of(pair->key, pair->value, true);
}

/* What the store has under this key; 0: nothing. */
static size_t size_there(const struct kv *kv, struct kv_bytes key) {
    size_t size = 0;
    kv_each_in(kv, key, (struct kv_bytes){"", 0}, add_size, &size);
    return size;
}

static bool has_room(const struct quota *q, const struct kv *kv, struct kv_bytes key) {
    char end[KEY_SIZE];
    size_t size = 0, n = key_run_length(key.data, key.len);
    struct kv_bytes run = {key.data, n};
    if (!n || q->runs > q->limits.runs_max)
        return false;
    kv_each_in(kv, run, kv_prefix_end(run, end), add_size, &size);
    return size && size < q->limits.runs_max / RUN_PART;
}

static const char *refuses_put(const struct quota *q, const struct kv *kv, const struct kv_op *op) {
    bool runs = is_runs(op->key, op->value);
    if (!runs)
        return q->others_full
                   ? "this store is full of keys that are no run's: see them and delete what is "
                     "not needed, or start it anew; runs are served"
                   : NULL;
    if (!q->runs_full || size_of(op->key, op->value, true) <= size_there(kv, op->key) ||
        has_room(q, kv, op->key))
        return NULL;
    return "this store is full of runs: somebody writes more of them than jobs do; see its keys "
           "and delete what is not theirs, or start it anew";
}

static const char *refuses_ops(const struct quota *q, const struct kv *kv, const struct kv_op *ops,
                               size_t n) {
    const char *why = NULL;
    for (size_t i = 0; i < n && !why; i++)
        why = ops[i].kind == KV_PUT ? refuses_put(q, kv, &ops[i]) : NULL;
    return why;
}

const char *quota_refuses(struct quota *q, const struct kv *kv, const struct kv_txn *txn,
                          int64_t now_ns) {
    if (!q->runs_full && !q->others_full)
        return NULL;
    if (now_ns - q->looked_at_ns >= LOOK_NS) {
        q->looked_at_ns = now_ns;
        look(q, kv);
    }
    const char *why = refuses_ops(q, kv, txn->success, txn->n_success);
    return why ? why : refuses_ops(q, kv, txn->failure, txn->n_failure);
}
