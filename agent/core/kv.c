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
    struct kv_record *r = kv_record_new(kv, kv_record_key(from), value);
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
        kv_place_insert(kv, i, record_copy(kv, from->sorted[i]));
    for (size_t i = 0; i < from->history.n; i++) {
        const struct kv_record *old = from->history.records[from->history.first + i];
        size_t at = kv_place_of(kv, kv_record_key(old));
        bool newest = kv_is_at(kv, at, kv_record_key(old)) && from->sorted[at] == old;
        struct kv_record *r = newest ? kv_record_ref(kv->sorted[at]) : record_copy(kv, old);
        kv_log_push(&kv->history, r);
        kv_record_unref(kv, r);
    }
    kv_lease_copy(kv, from);
    return kv;
}

void kv_each(const struct kv *kv, void (*see)(void *arg, const struct kv_pair *pair), void *arg) {
    for (size_t i = 0; i < kv->n; i++) {
        struct kv_pair pair = kv_pair_of(kv->sorted[i]);
        see(arg, &pair);
    }
}

void kv_each_in(const struct kv *kv, struct kv_bytes key, struct kv_bytes range_end,
                void (*see)(void *arg, const struct kv_pair *pair), void *arg) {
    size_t from, to = kv_places_of(kv, key, range_end, &from);
    for (size_t i = from; i < to; i++) {
        struct kv_pair pair = kv_pair_of(kv->sorted[i]);
        see(arg, &pair);
    }
}

void kv_each_event(const struct kv *kv, int64_t from_revision,
                   void (*see)(void *arg, const struct kv_event *event), void *arg) {
    for (size_t i = 0; i < kv->history.n; i++) {
        const struct kv_record *r = kv->history.records[kv->history.first + i];
        struct kv_event event = {.deleted = r->deleted, .pair = kv_pair_of(r)};
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

size_t kv_memory(const struct kv *kv) {
    return kv->bytes;
}
