/* kv_state: what kv.c, kv_lease.c and kv_watch.c share; nobody else includes it.
 *
 * A record is one version of one key, or its deletion, and never changes: the sorted array of the
 * newest versions, the history and the logs of the watched ranges all hold references to it. */
#pragma once

#include "agent/core/kv.h"
#include "base/list.h"
#include "base/pool.h"

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
    bool spared; /* while kv_lease_drop looks */
};

struct kv {
    int64_t revision, compact_revision;
    struct pool records;
    struct kv_record **sorted; /* the newest version of each key, by key */
    size_t n, cap;
    struct kv_log history;
    size_t history_max;
    size_t bytes;         /* of all records */
    struct kv_hold *hold; /* where the pairs of this transaction go; NULL: they are copied */
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
struct kv_record *kv_record_new(struct kv *kv, struct kv_bytes key, struct kv_bytes value);
/* As it lies in the record. */
struct kv_pair kv_pair_of(const struct kv_record *r);
/* The first place whose key is not less than key, and whether it has this one. */
size_t kv_place_of(const struct kv *kv, struct kv_bytes key);
bool kv_is_at(const struct kv *kv, size_t i, struct kv_bytes key);
void kv_place_insert(struct kv *kv, size_t i, struct kv_record *r);
/* The places [*ret_from, end) of a range. */
size_t kv_places_of(const struct kv *kv, struct kv_bytes key, struct kv_bytes end,
                    size_t *ret_from);

/* Gives the record of the array up, and tells that it is deleted. Taking it out of the array is the
 * caller's: whoever deletes many moves the rest once, not once for each. */
void kv_record_delete(struct kv *kv, struct kv_record *r, int64_t revision);

/* kv_watch.c */
void kv_log_push(struct kv_log *log, struct kv_record *r);
void kv_log_drop_below(struct kv *kv, struct kv_log *log, int64_t revision);
void kv_log_fini(struct kv *kv, struct kv_log *log);
/* One change, already in the array: into the history, and to whom it concerns. */
void kv_watch_notify(struct kv *kv, struct kv_record *r);
/* After a revision is whole: cuts the history to its length. */
void kv_watch_trim(struct kv *kv);
void kv_watch_fini(struct kv *kv);
