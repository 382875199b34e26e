#include "agent/core/kv_state.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

const char *kv_text(int status) {
    switch ((enum kv_status)status) {
    case KV_OK:
        return "ok";
    case KV_EMPTY_KEY:
        return "etcdserver: key is not provided";
    case KV_TOO_MANY_OPS:
        return "etcdserver: too many operations in txn request";
    case KV_DUPLICATE_KEY:
        return "etcdserver: duplicate key given in txn request";
    case KV_COMPACTED:
        return "etcdserver: mvcc: required revision has been compacted";
    case KV_FUTURE_REVISION:
        return "etcdserver: mvcc: required revision is a future revision";
    case KV_LEASE_NOT_FOUND:
        return "etcdserver: requested lease not found";
    case KV_LEASE_EXISTS:
        return "etcdserver: lease already exists";
    case KV_TOO_LARGE:
        return "etcdserver: request is too large";
    case KV_LEASE_TTL_TOO_LARGE:
        return "etcdserver: too large lease TTL";
    }
    return "etcdserver: unknown error";
}

/* --- bytes and records --- */

int kv_compare_bytes(struct kv_bytes a, struct kv_bytes b) {
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.data, b.data, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

static bool is_open_end(struct kv_bytes end) {
    return end.len == 1 && end.data[0] == '\0';
}

bool kv_in_range(struct kv_bytes key, struct kv_bytes from, struct kv_bytes end) {
    if (!end.len)
        return kv_compare_bytes(key, from) == 0;
    return kv_compare_bytes(key, from) >= 0 && (is_open_end(end) || kv_compare_bytes(key, end) < 0);
}

struct kv_bytes kv_prefix_end(struct kv_bytes prefix, char *out) {
    size_t n = prefix.len;
    while (n && (unsigned char)prefix.data[n - 1] == 0xff)
        n--;
    if (!n) {
        out[0] = '\0';
        return (struct kv_bytes){out, 1};
    }
    memcpy(out, prefix.data, n);
    out[n - 1] = (char)((unsigned char)out[n - 1] + 1);
    return (struct kv_bytes){out, n};
}

struct kv_record *kv_record_new(struct kv *kv, struct kv_bytes key, struct kv_bytes value) {
    struct kv_record *r = pool_take(&kv->records, sizeof(*r) + key.len + value.len);
    kv->bytes += sizeof(*r) + key.len + value.len;
    *r = (struct kv_record){.refs = 1, .key_len = key.len, .value_len = value.len};
    memcpy(r->bytes, key.data, key.len);
    if (value.len)
        memcpy(r->bytes + key.len, value.data, value.len);
    return r;
}

struct kv_record *kv_record_ref(struct kv_record *r) {
    r->refs++;
    return r;
}

void kv_record_unref(struct kv *kv, struct kv_record *r) {
    assert(r->refs > 0);
    size_t size = sizeof(*r) + r->key_len + r->value_len;
    if (--r->refs > 0)
        return;
    kv->bytes -= size;
    pool_give(&kv->records, r, size);
}

struct kv_pair kv_pair_copy(const struct kv_record *r, struct arena *arena) {
    struct kv_pair p = {.mod_revision = r->mod_revision,
                        .create_revision = r->create_revision,
                        .version = r->version,
                        .lease = r->lease};
    char *copy = arena_strndup(arena, r->bytes, r->key_len + r->value_len);
    p.key = (struct kv_bytes){copy, r->key_len};
    p.value = (struct kv_bytes){copy + r->key_len, r->value_len};
    return p;
}

struct kv_pair kv_pair_of(const struct kv_record *r) {
    return (struct kv_pair){.key = kv_record_key(r),
                            .value = {r->bytes + r->key_len, r->value_len},
                            .create_revision = r->create_revision,
                            .mod_revision = r->mod_revision,
                            .version = r->version,
                            .lease = r->lease};
}

/* --- the sorted array --- */

size_t kv_place_of(const struct kv *kv, struct kv_bytes key) {
    size_t low = 0, high = kv->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (kv_compare_bytes(kv_record_key(kv->sorted[mid]), key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool kv_is_at(const struct kv *kv, size_t i, struct kv_bytes key) {
    return i < kv->n && kv_compare_bytes(kv_record_key(kv->sorted[i]), key) == 0;
}

void kv_place_insert(struct kv *kv, size_t i, struct kv_record *r) {
    if (kv->n == kv->cap) {
        kv->cap = kv->cap ? kv->cap * 2 : 64;
        kv->sorted = realloc(kv->sorted, kv->cap * sizeof(*kv->sorted));
        if (!kv->sorted)
            abort();
    }
    memmove(kv->sorted + i + 1, kv->sorted + i, (kv->n - i) * sizeof(*kv->sorted));
    kv->sorted[i] = r;
    kv->n++;
}

size_t kv_places_of(const struct kv *kv, struct kv_bytes key, struct kv_bytes end,
                    size_t *ret_from) {
    *ret_from = kv_place_of(kv, key);
    if (!end.len)
        return *ret_from + kv_is_at(kv, *ret_from, key);
    if (is_open_end(end))
        return kv->n;
    size_t to = kv_place_of(kv, end);
    return to < *ret_from ? *ret_from : to;
}

struct kv *kv_new(uint64_t seed, size_t history_max) {
    struct kv *kv = mem_new(struct kv);
    kv->seed = seed;
    kv->revision = kv->compact_revision = 1;
    kv->history_max = history_max ? history_max : KV_HISTORY_DEFAULT;
    list_init(&kv->ranges);
    list_init(&kv->ready);
    return kv;
}

struct kv *kv_free(struct kv *kv) {
    if (!kv)
        return NULL;
    kv_watch_fini(kv);
    kv_log_fini(kv, &kv->history);
    for (size_t i = 0; i < kv->n; i++)
        kv_record_unref(kv, kv->sorted[i]);
    free(kv->sorted);
    free(kv->leases);
    pool_fini(&kv->records);
    free(kv);
    return NULL;
}

void kv_each(const struct kv *kv, void (*see)(void *arg, const struct kv_pair *pair), void *arg) {
    kv_each_in(kv, kv_string(""), (struct kv_bytes){"", 1}, see, arg);
}

int64_t kv_revision(const struct kv *kv) {
    return kv->revision;
}

int64_t kv_compact_revision(const struct kv *kv) {
    return kv->compact_revision;
}

size_t kv_count(const struct kv *kv) {
    return kv->n;
}

size_t kv_memory(const struct kv *kv) {
    return kv->bytes;
}

/* --- what a transaction may say --- */

static int check_range(const struct kv *kv, const struct kv_op *op) {
    if (op->revision > kv->revision)
        return KV_FUTURE_REVISION;
    return op->revision && op->revision < kv->revision ? KV_COMPACTED : KV_OK;
}

static int check_op(const struct kv_op *op, size_t *bytes) {
    *bytes += op->key.len + op->range_end.len + op->value.len;
    if (!op->key.len)
        return KV_EMPTY_KEY;
    return *bytes > KV_REQUEST_BYTES_MAX ? KV_TOO_LARGE : KV_OK;
}

/* A key put twice, or put and deleted. 128 operations at most: comparing all pairs is cheap. */
static bool has_duplicate(const struct kv_op *ops, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (ops[i].kind != KV_PUT)
            continue;
        for (size_t j = 0; j < n; j++) {
            bool again =
                ops[j].kind == KV_PUT && j < i && kv_compare_bytes(ops[i].key, ops[j].key) == 0;
            if (again ||
                (ops[j].kind == KV_DELETE && kv_in_range(ops[i].key, ops[j].key, ops[j].range_end)))
                return true;
        }
    }
    return false;
}

static int check_branch(const struct kv_op *ops, size_t n, size_t *bytes) {
    if (n > KV_OPS_MAX)
        return KV_TOO_MANY_OPS;
    for (size_t i = 0; i < n; i++) {
        int rc = check_op(&ops[i], bytes);
        if (rc)
            return rc;
    }
    return has_duplicate(ops, n) ? KV_DUPLICATE_KEY : KV_OK;
}

static int check_txn(const struct kv_txn *txn) {
    size_t bytes = 0;
    if (txn->n_compares > KV_OPS_MAX)
        return KV_TOO_MANY_OPS;
    for (size_t i = 0; i < txn->n_compares; i++)
        if (!txn->compares[i].key.len)
            return KV_EMPTY_KEY;
    int rc = check_branch(txn->success, txn->n_success, &bytes);
    return rc ? rc : check_branch(txn->failure, txn->n_failure, &bytes);
}

/* What can only be known for the branch that is taken. */
static int check_taken(const struct kv *kv, const struct kv_op *ops, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int rc = ops[i].kind == KV_RANGE ? check_range(kv, &ops[i]) : KV_OK;
        if (ops[i].kind == KV_PUT && ops[i].lease && !kv_lease_exists(kv, ops[i].lease))
            rc = KV_LEASE_NOT_FOUND;
        if (rc)
            return rc;
    }
    return KV_OK;
}

/* --- compares --- */

static int64_t number_of(const struct kv_record *r, enum kv_target target) {
    switch (target) {
    case KV_VERSION:
        return r->version;
    case KV_CREATE:
        return r->create_revision;
    case KV_MOD:
        return r->mod_revision;
    case KV_LEASE:
        return r->lease;
    case KV_VALUE:
        break;
    }
    assert(!"a value is no number");
    return 0;
}

static bool holds_for(const struct kv_compare *c, const struct kv_record *r) {
    int order;
    if (c->target == KV_VALUE) {
        struct kv_bytes value = {r->bytes + r->key_len, r->value_len};
        order = kv_compare_bytes(value, c->value);
    } else {
        int64_t number = number_of(r, c->target);
        order = (number > c->number) - (number < c->number);
    }
    switch (c->relation) {
    case KV_EQUAL:
        return order == 0;
    case KV_GREATER:
        return order > 0;
    case KV_LESS:
        return order < 0;
    case KV_NOT_EQUAL:
        return order != 0;
    }
    return false;
}

/* An empty range is compared as one absent key: all numbers 0, and no value. */
static bool compare_holds(const struct kv *kv, const struct kv_compare *c) {
    static const struct kv_record absent;
    size_t from, to = kv_places_of(kv, c->key, c->range_end, &from);
    if (from == to)
        return c->target != KV_VALUE && holds_for(c, &absent);
    for (size_t i = from; i < to; i++)
        if (!holds_for(c, kv->sorted[i]))
            return false;
    return true;
}

/* --- what it costs --- */

static size_t range_cost(const struct kv *kv, struct kv_bytes key, struct kv_bytes end) {
    size_t from, to = kv_places_of(kv, key, end, &from);
    return to - from + 1;
}

static size_t op_cost(const struct kv *kv, const struct kv_op *op) {
    if (op->kind == KV_PUT || op->count_only)
        return 1;
    size_t all = range_cost(kv, op->key, op->range_end);
    bool cut = op->kind == KV_RANGE && op->limit > 0 && (size_t)op->limit < all;
    return cut ? (size_t)op->limit : all;
}

static size_t ops_cost(const struct kv *kv, const struct kv_op *ops, size_t n) {
    size_t cost = 0;
    for (size_t i = 0; i < n; i++)
        cost += op_cost(kv, &ops[i]);
    return cost;
}

size_t kv_txn_cost(const struct kv *kv, const struct kv_txn *txn) {
    size_t cost = 0, success = ops_cost(kv, txn->success, txn->n_success);
    size_t failure = ops_cost(kv, txn->failure, txn->n_failure);
    for (size_t i = 0; i < txn->n_compares; i++)
        cost += range_cost(kv, txn->compares[i].key, txn->compares[i].range_end);
    return cost + (success > failure ? success : failure);
}

/* --- what is shown --- */

static void hold(struct kv_hold *h, struct kv_record *r) {
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 16;
        h->records = realloc(h->records, h->cap * sizeof(*h->records));
        if (!h->records)
            abort();
    }
    h->records[h->n++] = kv_record_ref(r);
}

/* n records that lie one after the other. */
static void show(struct kv *kv, struct kv_record **records, size_t n, struct arena *arena,
                 struct kv_op_result *ret) {
    ret->n_pairs = n;
    if (kv->hold) {
        ret->hold = kv->hold;
        ret->first = kv->hold->n;
        for (size_t i = 0; i < n; i++)
            hold(kv->hold, records[i]);
        return;
    }
    ret->pairs = arena_array(arena, struct kv_pair, n);
    for (size_t i = 0; i < n; i++) {
        ret->pairs[i] = kv_pair_copy(records[i], arena);
        if (ret->keys_only)
            ret->pairs[i].value = (struct kv_bytes){"", 0};
    }
}

struct kv_pair kv_result_pair(const struct kv_op_result *r, size_t i) {
    if (!r->hold)
        return r->pairs[i];
    struct kv_pair pair = kv_pair_of(r->hold->records[r->first + i]);
    if (r->keys_only)
        pair.value = (struct kv_bytes){"", 0};
    return pair;
}

void kv_release(struct kv *kv, struct kv_hold *h) {
    for (size_t i = 0; i < h->n; i++)
        kv_record_unref(kv, h->records[i]);
    free(h->records);
    *h = (struct kv_hold){0};
}

/* --- operations --- */

static void op_range(struct kv *kv, const struct kv_op *op, struct arena *arena,
                     struct kv_op_result *ret) {
    size_t from, to = kv_places_of(kv, op->key, op->range_end, &from), n = to - from;
    ret->count = (int64_t)n;
    if (op->count_only)
        return;
    if (op->limit > 0 && (size_t)op->limit < n) {
        n = (size_t)op->limit;
        ret->more = true;
    }
    ret->keys_only = op->keys_only;
    show(kv, n ? kv->sorted + from : NULL, n, arena, ret);
}

static void op_put(struct kv *kv, const struct kv_op *op, int64_t revision, struct arena *arena,
                   struct kv_op_result *ret) {
    struct kv_record *r = kv_record_new(kv, op->key, op->value);
    size_t i = kv_place_of(kv, op->key);
    struct kv_record *old = kv_is_at(kv, i, op->key) ? kv->sorted[i] : NULL;
    r->create_revision = old ? old->create_revision : revision;
    r->mod_revision = revision;
    r->version = old ? old->version + 1 : 1;
    r->lease = op->lease;
    if (old && op->prev_kv)
        show(kv, &old, 1, arena, ret);
    if (old) {
        kv->sorted[i] = r;
        kv_record_unref(kv, old);
    } else {
        kv_place_insert(kv, i, r);
    }
    kv_watch_notify(kv, r);
}

void kv_record_delete(struct kv *kv, struct kv_record *r, int64_t revision) {
    struct kv_record *gone = kv_record_new(kv, kv_record_key(r), (struct kv_bytes){"", 0});
    gone->deleted = true;
    gone->mod_revision = revision;
    kv_record_unref(kv, r);
    kv_watch_notify(kv, gone);
    kv_record_unref(kv, gone);
}

static void op_delete(struct kv *kv, const struct kv_op *op, int64_t revision, struct arena *arena,
                      struct kv_op_result *ret) {
    size_t from, to = kv_places_of(kv, op->key, op->range_end, &from);
    ret->count = (int64_t)(to - from);
    if (op->prev_kv)
        show(kv, kv->sorted + from, to - from, arena, ret);
    for (size_t i = from; i < to; i++)
        kv_record_delete(kv, kv->sorted[i], revision);
    if (kv->n > to)
        memmove(kv->sorted + from, kv->sorted + to, (kv->n - to) * sizeof(*kv->sorted));
    kv->n -= to - from;
}

/* Returns whether something changed. */
static bool op_apply(struct kv *kv, const struct kv_op *op, int64_t revision, struct arena *arena,
                     struct kv_op_result *ret) {
    ret->kind = op->kind;
    switch (op->kind) {
    case KV_RANGE:
        op_range(kv, op, arena, ret);
        return false;
    case KV_PUT:
        op_put(kv, op, revision, arena, ret);
        return true;
    case KV_DELETE:
        op_delete(kv, op, revision, arena, ret);
        return ret->count > 0;
    }
    return false;
}

int kv_txn(struct kv *kv, const struct kv_txn *txn, struct arena *arena, struct kv_txn_result *ret,
           struct err *err) {
    int rc = check_txn(txn);
    bool succeeded = true;
    for (size_t i = 0; !rc && succeeded && i < txn->n_compares; i++)
        succeeded = compare_holds(kv, &txn->compares[i]);
    const struct kv_op *ops = succeeded ? txn->success : txn->failure;
    size_t n = succeeded ? txn->n_success : txn->n_failure;
    if (!rc)
        rc = check_taken(kv, ops, n);
    if (rc)
        return err_say(err, rc, "%s", kv_text(rc));
    *ret = (struct kv_txn_result){.succeeded = succeeded, .n_results = n};
    ret->results = arena_array(arena, struct kv_op_result, n);
    bool changed = false;
    for (size_t i = 0; i < n; i++)
        changed |= op_apply(kv, &ops[i], kv->revision + 1, arena, &ret->results[i]);
    if (changed) {
        kv->revision++;
        kv_watch_trim(kv);
    }
    ret->revision = kv->revision;
    return 0;
}

int kv_txn_hold(struct kv *kv, const struct kv_txn *txn, struct arena *arena, struct kv_hold *h,
                struct kv_txn_result *ret, struct err *err) {
    kv->hold = h;
    int rc = kv_txn(kv, txn, arena, ret, err);
    kv->hold = NULL;
    return rc;
}
