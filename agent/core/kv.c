#include "agent/core/kv_state.h"

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

static struct kv_record *record_new(struct kv *kv, struct kv_bytes key, struct kv_bytes value) {
    struct kv_record *r = pool_take(&kv->records, sizeof(*r) + key.len + value.len);
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
    if (--r->refs == 0)
        pool_give(&kv->records, r, sizeof(*r) + r->key_len + r->value_len);
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

/* --- the sorted array --- */

/* The first place whose key is not less than key. */
static size_t place_of(const struct kv *kv, struct kv_bytes key) {
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

static bool is_at(const struct kv *kv, size_t i, struct kv_bytes key) {
    return i < kv->n && kv_compare_bytes(kv_record_key(kv->sorted[i]), key) == 0;
}

static void place_insert(struct kv *kv, size_t i, struct kv_record *r) {
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

/* The places [*ret_from, end) of a range. */
static size_t places_of(const struct kv *kv, struct kv_bytes key, struct kv_bytes end,
                        size_t *ret_from) {
    *ret_from = place_of(kv, key);
    if (!end.len)
        return *ret_from + is_at(kv, *ret_from, key);
    if (is_open_end(end))
        return kv->n;
    size_t to = place_of(kv, end);
    return to < *ret_from ? *ret_from : to;
}

struct kv *kv_new(uint64_t seed, size_t history_max) {
    struct kv *kv = calloc(1, sizeof(*kv));
    if (!kv)
        abort();
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

static struct kv_record *record_copy(struct kv *kv, const struct kv_record *from) {
    struct kv_bytes value = {from->bytes + from->key_len, from->value_len};
    struct kv_record *r = record_new(kv, kv_record_key(from), value);
    r->deleted = from->deleted;
    r->create_revision = from->create_revision;
    r->mod_revision = from->mod_revision;
    r->version = from->version;
    r->lease = from->lease;
    return r;
}

/* Records belong to their store, so that each may give its memory back as it likes; one that is in
 * the array and in the history is one in the copy too. */
struct kv *kv_copy(const struct kv *from) {
    struct kv *kv = kv_new(from->seed, from->history_max);
    kv->revision = from->revision;
    kv->compact_revision = from->compact_revision;
    for (size_t i = 0; i < from->n; i++)
        place_insert(kv, i, record_copy(kv, from->sorted[i]));
    for (size_t i = 0; i < from->history.n; i++) {
        const struct kv_record *old = from->history.records[from->history.first + i];
        size_t at = place_of(kv, kv_record_key(old));
        bool newest = is_at(kv, at, kv_record_key(old)) && from->sorted[at] == old;
        struct kv_record *r = newest ? kv_record_ref(kv->sorted[at]) : record_copy(kv, old);
        kv_log_push(&kv->history, r);
        kv_record_unref(kv, r);
    }
    kv_lease_copy(kv, from);
    return kv;
}

static struct kv_pair pair_of(const struct kv_record *r) {
    return (struct kv_pair){.key = kv_record_key(r),
                            .value = {r->bytes + r->key_len, r->value_len},
                            .create_revision = r->create_revision,
                            .mod_revision = r->mod_revision,
                            .version = r->version,
                            .lease = r->lease};
}

void kv_each(const struct kv *kv, void (*see)(void *arg, const struct kv_pair *pair), void *arg) {
    for (size_t i = 0; i < kv->n; i++) {
        struct kv_pair pair = pair_of(kv->sorted[i]);
        see(arg, &pair);
    }
}

void kv_each_event(const struct kv *kv, int64_t from_revision,
                   void (*see)(void *arg, const struct kv_event *event), void *arg) {
    for (size_t i = 0; i < kv->history.n; i++) {
        const struct kv_record *r = kv->history.records[kv->history.first + i];
        struct kv_event event = {.deleted = r->deleted, .pair = pair_of(r)};
        if (r->mod_revision >= from_revision)
            see(arg, &event);
    }
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
    size_t from, to = places_of(kv, c->key, c->range_end, &from);
    if (from == to)
        return c->target != KV_VALUE && holds_for(c, &absent);
    for (size_t i = from; i < to; i++)
        if (!holds_for(c, kv->sorted[i]))
            return false;
    return true;
}

/* --- operations --- */

static void op_range(const struct kv *kv, const struct kv_op *op, struct arena *arena,
                     struct kv_op_result *ret) {
    size_t from, to = places_of(kv, op->key, op->range_end, &from), n = to - from;
    ret->count = (int64_t)n;
    if (op->count_only)
        return;
    if (op->limit > 0 && (size_t)op->limit < n) {
        n = (size_t)op->limit;
        ret->more = true;
    }
    ret->pairs = arena_array(arena, struct kv_pair, n);
    ret->n_pairs = n;
    for (size_t i = 0; i < n; i++) {
        ret->pairs[i] = kv_pair_copy(kv->sorted[from + i], arena);
        if (op->keys_only)
            ret->pairs[i].value = (struct kv_bytes){"", 0};
    }
}

static void op_put(struct kv *kv, const struct kv_op *op, int64_t revision, struct arena *arena,
                   struct kv_op_result *ret) {
    struct kv_record *r = record_new(kv, op->key, op->value);
    size_t i = place_of(kv, op->key);
    struct kv_record *old = is_at(kv, i, op->key) ? kv->sorted[i] : NULL;
    r->create_revision = old ? old->create_revision : revision;
    r->mod_revision = revision;
    r->version = old ? old->version + 1 : 1;
    r->lease = op->lease;
    if (old && op->prev_kv) {
        ret->pairs = arena_new(arena, struct kv_pair);
        ret->pairs[0] = kv_pair_copy(old, arena);
        ret->n_pairs = 1;
    }
    if (old) {
        kv->sorted[i] = r;
        kv_record_unref(kv, old);
    } else {
        place_insert(kv, i, r);
    }
    kv_watch_notify(kv, r);
}

static void delete_at(struct kv *kv, size_t i, int64_t revision) {
    struct kv_record *gone = record_new(kv, kv_record_key(kv->sorted[i]), (struct kv_bytes){"", 0});
    gone->deleted = true;
    gone->mod_revision = revision;
    kv_record_unref(kv, kv->sorted[i]);
    kv->n--;
    memmove(kv->sorted + i, kv->sorted + i + 1, (kv->n - i) * sizeof(*kv->sorted));
    kv_watch_notify(kv, gone);
    kv_record_unref(kv, gone);
}

static void op_delete(struct kv *kv, const struct kv_op *op, int64_t revision, struct arena *arena,
                      struct kv_op_result *ret) {
    size_t from, to = places_of(kv, op->key, op->range_end, &from);
    ret->count = (int64_t)(to - from);
    if (op->prev_kv) {
        ret->n_pairs = to - from;
        ret->pairs = arena_array(arena, struct kv_pair, ret->n_pairs);
        for (size_t i = from; i < to; i++)
            ret->pairs[i - from] = kv_pair_copy(kv->sorted[i], arena);
    }
    for (size_t n = to - from; n; n--)
        delete_at(kv, from, revision);
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

void kv_delete_leased(struct kv *kv, int64_t lease) {
    bool changed = false;
    for (size_t i = 0; i < kv->n;) {
        if (kv->sorted[i]->lease != lease) {
            i++;
            continue;
        }
        delete_at(kv, i, kv->revision + 1);
        changed = true;
    }
    if (changed) {
        kv->revision++;
        kv_watch_trim(kv);
    }
}
