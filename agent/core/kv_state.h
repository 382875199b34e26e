/* kv_state: what kv.c, kv_lease.c and kv_watch.c share; nobody else includes it.
 *
 * A record is one version of one key, or its deletion, and never changes: the sorted array of the
 * newest versions, the history and the logs of the watched ranges all hold references to it. */
#pragma once

#include "agent/base/list.h"
#include "agent/base/pool.h"
#include "agent/core/kv.h"

struct kv_record {
    size_t refs;
    bool deleted;
    int64_t create_revision, mod_revision, version, lease;
    size_t key_len, value_len;
    char bytes[]; /* key, then value */
};

/* A queue of references in order of revision. */
struct kv_log {
    struct kv_record **records;
    size_t first, n, cap; /* records[first .. first + n) */
};

struct kv_lease {
    int64_t id, ttl_ns, ends_ns;
};

struct kv {
    int64_t revision, compact_revision;
    struct pool records;
    struct kv_record **sorted; /* the newest version of each key, by key */
    size_t n, cap;
    struct kv_log history;
    size_t history_max;
    struct kv_lease *leases;
    size_t n_leases, cap_leases;
    uint64_t seed;
    struct list ranges;         /* of struct kv_watched: the ranges with an end */
    struct kv_watched **keys;   /* hash of the watched single keys, chained */
    size_t n_keys, n_key_slots; /* slots: a power of two */
    struct list ready;
};

/* kv.c */
static inline struct kv_bytes kv_record_key(const struct kv_record *r) {
    return (struct kv_bytes){r->bytes, r->key_len};
}
int kv_compare_bytes(struct kv_bytes a, struct kv_bytes b);
bool kv_in_range(struct kv_bytes key, struct kv_bytes from, struct kv_bytes end);
struct kv_pair kv_pair_copy(const struct kv_record *r, struct arena *arena);
struct kv_record *kv_record_ref(struct kv_record *r);
void kv_record_unref(struct kv *kv, struct kv_record *r);
/* Deletes what the lease holds, in one revision. */
void kv_delete_leased(struct kv *kv, int64_t lease);

/* kv_lease.c */
void kv_lease_copy(struct kv *to, const struct kv *from);

/* kv_watch.c */
void kv_log_push(struct kv_log *log, struct kv_record *r);
void kv_log_drop_below(struct kv *kv, struct kv_log *log, int64_t revision);
void kv_log_fini(struct kv *kv, struct kv_log *log);
/* One change, already in the array: into the history, and to whom it concerns. */
void kv_watch_notify(struct kv *kv, struct kv_record *r);
/* After a revision is whole: cuts the history to its length. */
void kv_watch_trim(struct kv *kv);
void kv_watch_fini(struct kv *kv);
