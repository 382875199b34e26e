/* kv: the part of etcd v3 that a rendezvous needs, as a pure state machine.
 *
 * Keys and values are opaque bytes. Every transaction that changes something makes one revision;
 * an empty store is at revision 1, as etcd's is. What etcd refuses is refused here with the same
 * sentence, so that the embedded store, the in-process store and the simulator's store are one
 * (source: etcd 3.4/3.5 api/v3rpc/rpctypes, server/etcdserver/apply, measured against 3.4.23).
 *
 * Not here: authentication, nested transactions, reads at an old revision (a read at a revision
 * that is not the newest is answered as compacted), previous values in watch events.
 *
 * Nothing here reads a clock: leases are judged by the `now_ns` that the caller passes, any clock
 * that does not step back. Nothing fails but by what the header says (out of memory aborts).
 *
 * Memory: what a call returns is copied into the caller's arena. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct kv;

struct kv_bytes {
    const char *data;
    size_t len;
};

static inline struct kv_bytes kv_string(const char *s) {
    return (struct kv_bytes){s, strlen(s)};
}

/* What is refused. kv_text gives etcd's sentence ("etcdserver: too many operations in txn
 * request"); functions that take an err have it there too. */
enum kv_status {
    KV_OK = 0,
    KV_EMPTY_KEY = -1,
    KV_TOO_MANY_OPS = -2,
    KV_DUPLICATE_KEY = -3,
    KV_COMPACTED = -4,
    KV_FUTURE_REVISION = -5,
    KV_LEASE_NOT_FOUND = -6,
    KV_LEASE_EXISTS = -7,
    KV_TOO_LARGE = -8,
    KV_LEASE_TTL_TOO_LARGE = -9,
};
const char *kv_text(int status);

enum { KV_OPS_MAX = 128, KV_REQUEST_BYTES_MAX = 1536 * 1024, KV_HISTORY_DEFAULT = 8192 };

struct kv_pair {
    struct kv_bytes key, value;
    int64_t create_revision, mod_revision, version, lease;
};

/* A range is one key when range_end is empty, all keys >= key when range_end is one NUL byte, else
 * [key, range_end). kv_prefix_end writes the range_end that makes key a prefix. */
struct kv_compare {
    enum kv_target { KV_VERSION, KV_CREATE, KV_MOD, KV_VALUE, KV_LEASE } target;
    enum kv_relation { KV_EQUAL, KV_GREATER, KV_LESS, KV_NOT_EQUAL } relation;
    struct kv_bytes key, range_end;
    int64_t number;        /* all targets but KV_VALUE; a key that is absent has 0 everywhere */
    struct kv_bytes value; /* KV_VALUE; an absent key compares false whatever the relation */
};

struct kv_op {
    enum kv_op_kind { KV_RANGE, KV_PUT, KV_DELETE } kind;
    struct kv_bytes key, range_end; /* range_end: not for a put */
    struct kv_bytes value;          /* put */
    int64_t lease;                  /* put; 0: none */
    int64_t limit;                  /* range; 0: none */
    int64_t revision;               /* range; 0: the newest */
    bool keys_only, count_only;     /* range */
    bool prev_kv;                   /* put, delete: return what was there */
};

struct kv_op_result {
    enum kv_op_kind kind;
    struct kv_pair *pairs; /* range: what was found, by key; put, delete with prev_kv: what was */
    size_t n_pairs;
    const struct kv_hold *hold; /* NULL, or where they are instead of in pairs, from `first` on */
    size_t first;
    bool keys_only; /* of what is held values are not to be shown */
    int64_t count;  /* range: all there are, also past the limit; delete: how many went */
    bool more;      /* range: the limit cut it */
};

struct kv_txn {
    const struct kv_compare *compares;
    size_t n_compares;
    const struct kv_op *success, *failure;
    size_t n_success, n_failure;
};

struct kv_txn_result {
    bool succeeded;               /* the compares held */
    int64_t revision;             /* of the store after it */
    struct kv_op_result *results; /* one for each operation of the branch taken */
    size_t n_results;
};

struct kv_event {
    bool deleted; /* then only key and mod_revision of pair are set, the rest is 0 */
    struct kv_pair pair;
};

/* history_max: how many events are kept for watches that start in the past (0: the default).
 * seed: for the ids of leases that the store chooses. */
struct kv *kv_new(uint64_t seed, size_t history_max);
struct kv *kv_free(struct kv *kv); /* frees its watches too; NULL is allowed; returns NULL */

/* A second store with the same keys, leases and history; nobody watches it. */
struct kv *kv_copy(const struct kv *from);
/* Shows every key in order, or those of a range, and every event from a revision on; what is shown
 * lives as long as the store is not changed. */
void kv_each(const struct kv *kv, void (*see)(void *arg, const struct kv_pair *pair), void *arg);
void kv_each_in(const struct kv *kv, struct kv_bytes key, struct kv_bytes range_end,
                void (*see)(void *arg, const struct kv_pair *pair), void *arg);
void kv_each_event(const struct kv *kv, int64_t from_revision,
                   void (*see)(void *arg, const struct kv_event *event), void *arg);

int64_t kv_revision(const struct kv *kv);
/* The oldest revision a watch can start from. */
int64_t kv_compact_revision(const struct kv *kv);
size_t kv_count(const struct kv *kv);

/* Applies one transaction whole. A single put, delete or range is a transaction without compares.
 * Returns 0, also when the compares did not hold; else an enum kv_status, and nothing changed. */
int kv_txn(struct kv *kv, const struct kv_txn *txn, struct arena *arena, struct kv_txn_result *ret,
           struct err *err);

/* What an answer shows, without a copy: the store's own records, eight bytes each, which stay as
 * they are until kv_release. {0} holds nothing. */
struct kv_hold {
    struct kv_record **records;
    size_t n, cap;
};
/* As kv_txn, but pairs are held, and *hold outlives the result. */
int kv_txn_hold(struct kv *kv, const struct kv_txn *txn, struct arena *arena, struct kv_hold *hold,
                struct kv_txn_result *ret, struct err *err);
void kv_release(struct kv *kv, struct kv_hold *hold);
/* The i-th pair, be it held or copied; of one that is held it lives until kv_release. */
struct kv_pair kv_result_pair(const struct kv_op_result *r, size_t i);
/* How many keys it would look at, at most. */
size_t kv_txn_cost(const struct kv *kv, const struct kv_txn *txn);
/* Bytes of all records: of keys, of history, and of what is held and else no more. */
size_t kv_memory(const struct kv *kv);

/* The revision from which on the events hold at most so many bytes. */
int64_t kv_history_from(const struct kv *kv, size_t bytes);
/* Forgets the events below `revision`. Returns 0, KV_COMPACTED (was already) or
 * KV_FUTURE_REVISION. */
int kv_compact(struct kv *kv, int64_t revision, struct err *err);

/* The end of the range of all keys that begin with prefix, written to out (prefix.len bytes are
 * enough, at least 1). */
struct kv_bytes kv_prefix_end(struct kv_bytes prefix, char *out);

/* --- leases: when one ends, its keys are deleted in one revision --- */

/* id 0: the store chooses. Returns 0, KV_LEASE_EXISTS or KV_LEASE_TTL_TOO_LARGE. */
int kv_lease_grant(struct kv *kv, int64_t id, int64_t ttl_s, int64_t now_ns, int64_t *ret_id,
                   struct err *err);
/* *ret_ttl_s is the whole time to live again. Returns 0 or KV_LEASE_NOT_FOUND. */
int kv_lease_keepalive(struct kv *kv, int64_t id, int64_t now_ns, int64_t *ret_ttl_s,
                       struct err *err);
int kv_lease_revoke(struct kv *kv, int64_t id, struct err *err);
bool kv_lease_exists(const struct kv *kv, int64_t id);
/* Returns how many leases there are. */
size_t kv_lease_count(const struct kv *kv);
/* Ends n leases, those first that were kept alive longest ago, but none that holds a key which
 * spares it. Returns how many that were. */
size_t kv_lease_drop(struct kv *kv, size_t n, bool (*spares)(struct kv_bytes key));
/* Ends every lease that has run out. Returns the time at which to call again, INT64_MAX: never. */
int64_t kv_lease_expire(struct kv *kv, int64_t now_ns);

/* --- watches --- */

/* A watch of a key or a range, from start_revision on (0: from the next change on). A change marks
 * the watches it concerns ready: their number costs nothing to the others, and a change costs one
 * look per range that is watched by anybody, not per watch. `owner` is the caller's. */
struct kv_watch;
struct kv_watch *kv_watch_new(struct kv *kv, struct kv_bytes key, struct kv_bytes range_end,
                              int64_t start_revision, void *owner);
struct kv_watch *kv_watch_free(struct kv_watch *w); /* NULL is allowed; returns NULL */
void *kv_watch_owner(const struct kv_watch *w);

/* Takes the next ready watch off the list, NULL when there is none. */
struct kv_watch *kv_watch_ready(struct kv *kv);

/* There are events that it has not taken; and some of them are no more, as kv_watch_take would say.
 */
bool kv_watch_is_behind(const struct kv_watch *w);
bool kv_watch_is_lost(const struct kv_watch *w);

/* The events since the last take, in order of revision. With max > 0 it stops after that many, or
 * after KV_TAKE_BYTES_MAX of them, at the end of a revision (one is never split), and the watch is
 * ready again when there are more.
 * Returns 0, or KV_COMPACTED when events it had not taken are no more: the caller ends the watch
 * and says kv_compact_revision. */
enum { KV_TAKE_BYTES_MAX = 256 * 1024 };
int kv_watch_take(struct kv_watch *w, size_t max, struct arena *arena, struct kv_event **ret_events,
                  size_t *ret_n);
