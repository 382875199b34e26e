#include "agent/core/kv_request.h"

struct kv_bytes kv_request_plain(struct arena *a, enum key_kind kind, const union value *v) {
    size_t size = value_size(kind);
    return (struct kv_bytes){memcpy(arena_alloc(a, size), v, size), size};
}

struct kv_bytes kv_request_key(struct arena *a, const char *run_id, const struct store_key *key,
                               struct kv_bytes *ret_end) {
    char text[KEY_SIZE], end[KEY_SIZE];
    size_t len = key_format(key, run_id, text, end), end_len = end[0] ? len : 0;
    *ret_end = (struct kv_bytes){end_len ? arena_strndup(a, end, end_len) : "", end_len};
    return (struct kv_bytes){arena_strndup(a, text, len), len};
}

struct kv_txn kv_request_txn(struct arena *a, const char *run_id, const struct txn *txn,
                             kv_request_value *value) {
    static const enum kv_target targets[] = {[COMPARE_VERSION] = KV_VERSION,
                                             [COMPARE_CREATE] = KV_CREATE,
                                             [COMPARE_MOD] = KV_MOD,
                                             [COMPARE_LEASE] = KV_LEASE};
    struct kv_compare *compares = arena_array(a, struct kv_compare, txn->n_compares);
    struct kv_op *ops = arena_array(a, struct kv_op, txn->n_ops);
    for (size_t i = 0; i < txn->n_compares; i++) {
        const struct compare *from = &txn->compares[i];
        compares[i].target = targets[from->target];
        compares[i].relation = from->relation == COMPARE_LESS ? KV_LESS : KV_EQUAL;
        compares[i].number = from->number;
        compares[i].key = kv_request_key(a, run_id, &from->key, &compares[i].range_end);
    }
    for (size_t i = 0; i < txn->n_ops; i++) {
        const struct op *from = &txn->ops[i];
        ops[i].kind = from->put ? KV_PUT : KV_DELETE;
        ops[i].key = kv_request_key(a, run_id, &from->key, &ops[i].range_end);
        if (!from->put)
            continue;
        ops[i].value = value(a, from->key.kind, from->value);
        ops[i].lease = txn->lease;
    }
    return (struct kv_txn){.compares = compares,
                           .n_compares = txn->n_compares,
                           .success = ops,
                           .n_success = txn->n_ops};
}

struct kv_txn kv_request_read(struct arena *a, const char *run_id, const struct store_key *keys,
                              size_t n) {
    struct kv_op *ops = arena_array(a, struct kv_op, n);
    for (size_t i = 0; i < n; i++) {
        ops[i].kind = KV_RANGE;
        ops[i].key = kv_request_key(a, run_id, &keys[i], &ops[i].range_end);
    }
    return (struct kv_txn){.success = ops, .n_success = n};
}

const struct txn *kv_request_writes(const struct action *action) {
    return action->kind == ACTION_BEAT  ? &action->beat.txn
           : action->kind == ACTION_TXN ? &action->txn.txn
                                        : NULL;
}

struct op *kv_request_ops(struct arena *a, const struct txn *txn, const struct kv_txn *plain) {
    struct op *ops = arena_array(a, struct op, txn->n_ops);
    for (size_t i = 0; i < txn->n_ops; i++) {
        ops[i] = txn->ops[i];
        ops[i].value = (const void *)plain->success[i].value.data;
    }
    return ops;
}

uint64_t kv_request_id(const struct action *action) {
    if (action->kind == ACTION_BEAT)
        return (uint64_t)action->beat.seq;
    if (action->kind == ACTION_TXN)
        return action->txn.id;
    return action->kind == ACTION_SNAPSHOT ? action->snapshot.id : action->lease.id;
}

struct event kv_request_event(enum action_kind kind, uint64_t id, bool reached, bool applied,
                              int64_t revision) {
    struct event ev = {.kind = EVENT_DONE};
    if (kind == ACTION_BEAT) {
        ev.kind = EVENT_BEAT;
        ev.beat.seq = (int64_t)id;
        ev.beat.result = !reached ? BEAT_FAILED : applied ? BEAT_APPLIED : BEAT_REFUSED;
    } else if (kind == ACTION_SNAPSHOT) {
        ev.kind = EVENT_SNAPSHOT;
        ev.snapshot.id = id;
        ev.snapshot.reached = reached;
        ev.snapshot.revision = revision;
    } else {
        ev.done.id = id;
        ev.done.reached = reached;
        ev.done.applied = applied;
        ev.done.revision = revision;
    }
    return ev;
}

struct entry kv_request_revisions(const struct kv_pair *pair, bool deleted) {
    return (struct entry){.deleted = deleted,
                          .create_revision = pair->create_revision,
                          .mod_revision = pair->mod_revision,
                          .version = pair->version};
}

struct entry *kv_request_entries(struct arena *a, const struct kv_txn_result *r,
                                 kv_request_entry *read, void *arg, size_t *ret_n) {
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < r->n_results; i++)
        n += r->results[i].n_pairs;
    struct entry *entries = arena_array(a, struct entry, n);
    for (size_t i = 0; i < r->n_results; i++)
        for (size_t k = 0; k < r->results[i].n_pairs; k++)
            kept += read(arg, a, &r->results[i].pairs[k], false, &entries[kept]);
    *ret_n = kept;
    return entries;
}
