/* kv_request: what a core asks for in the words of a store: keys as text, values as bytes. The real
 * client, the embedded store's certificates and both simulations translate here. */
#pragma once

#include "agent/core/kv.h"
#include "agent/core/rendezvous.h"

/* The bytes of a value, which live as long as the arena. */
typedef struct kv_bytes kv_request_value(struct arena *a, enum key_kind kind, const union value *v);
/* A copy of the struct: for a store that nobody else reads. */
kv_request_value kv_request_plain;

/* A key or a whole scope as a range, which lives as long as the arena; *ret_end is empty for one key.
 */
struct kv_bytes kv_request_key(struct arena *a, const char *run_id, const struct key *key,
                               struct kv_bytes *ret_end);
/* What is returned lives as long as the arena. */
struct kv_txn kv_request_txn(struct arena *a, const char *run_id, const struct txn *txn,
                             kv_request_value *value);
struct kv_txn kv_request_read(struct arena *a, const char *run_id, const struct key *keys,
                              size_t n);
