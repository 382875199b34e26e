/* kv_request: what a core asks for in the words of a store (keys as text, values as bytes), and
 * what the store answers in those of the core. The real client, the embedded store's certificates
 * and both simulations translate here. */
#pragma once

#include "agent/core/kv.h"
#include "agent/core/rendezvous.h"

/* The bytes of a value, which live as long as the arena. */
typedef struct kv_bytes kv_request_value(struct arena *a, enum key_kind kind, const union value *v);
/* A copy of the struct: for a store that nobody else reads. */
kv_request_value kv_request_plain;

/* A key or a whole scope as a range, which lives as long as the arena; *ret_end is empty for one
 * key. */
struct kv_bytes kv_request_key(struct arena *a, const char *run_id, const struct store_key *key,
                               struct kv_bytes *ret_end);
/* What is returned lives as long as the arena. */
struct kv_txn kv_request_txn(struct arena *a, const char *run_id, const struct txn *txn,
                             kv_request_value *value);
struct kv_txn kv_request_read(struct arena *a, const char *run_id, const struct store_key *keys,
                              size_t n);
/* What an action writes; NULL: nothing. */
const struct txn *kv_request_writes(const struct action *action);
/* Its operations, with values that are those of a kv_request_plain transaction. */
struct op *kv_request_ops(struct arena *a, const struct txn *txn, const struct kv_txn *plain);

/* By what the answer to an action is known: of a beat, its seq. */
uint64_t kv_request_id(const struct action *action);
/* What came of it: EVENT_DONE, EVENT_BEAT or EVENT_SNAPSHOT, the last still without entries.
 * reached is false where nobody knows whether it was applied. */
struct event kv_request_event(enum action_kind kind, uint64_t id, bool reached, bool applied,
                              int64_t revision);
/* Reads what a store shows. Returns false for what is none of the run's. */
typedef bool kv_request_entry(void *arg, struct arena *a, const struct kv_pair *pair, bool deleted,
                              struct entry *ret);
/* All but key and value. */
struct entry kv_request_revisions(const struct kv_pair *pair, bool deleted);
/* What a read has found, in an arena. */
struct entry *kv_request_entries(struct arena *a, const struct kv_txn_result *r,
                                 kv_request_entry *read, void *arg, size_t *ret_n);
