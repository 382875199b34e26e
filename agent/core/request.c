/* What the core asks for: actions are added to the list of a step, and each request to the store is
 * one transaction that waits for its answer. */
#include "agent/core/state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct draft {
    struct compare *compares;
    struct op *ops;
    size_t n_compares, cap_compares, n_ops, cap_ops;
    struct arena *arena;
};

/* --- actions --- */

struct action *action_add(struct rendezvous *r, enum action_kind kind) {
    if (r->n_actions == r->cap_actions) {
        r->cap_actions = r->cap_actions ? r->cap_actions * 2 : 8;
        r->actions = realloc(r->actions, r->cap_actions * sizeof(*r->actions));
        if (!r->actions)
            abort();
    }
    struct action *a = &r->actions[r->n_actions++];
    memset(a, 0, sizeof(*a));
    a->kind = kind;
    return a;
}

void action_log(struct rendezvous *r, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    action_add(r, ACTION_LOG)->log = arena_vprintf(&r->arena, fmt, ap);
    va_end(ap);
}

void action_claim(struct rendezvous *r, const char *what, int64_t round) {
    struct action *a = action_add(r, ACTION_CLAIM);
    a->claim.what = what;
    a->claim.round = round;
}

void action_store(struct rendezvous *r, bool lost, const char *fmt, ...) {
    struct action *a = action_add(r, ACTION_STORE);
    va_list ap;
    va_start(ap, fmt);
    a->store.text = arena_vprintf(&r->arena, fmt, ap);
    va_end(ap);
    a->store.lost = lost;
}

struct action *action_exit(struct rendezvous *r, int code, const char *text,
                           const struct failure *failure) {
    struct action *a = action_add(r, ACTION_EXIT);
    a->exit.code = code;
    a->exit.text = text;
    a->exit.failure = failure;
    r->over = true;
    return a;
}

void action_watch(struct rendezvous *r, enum watch_slot slot, struct store_key key, int64_t from) {
    struct action *a = action_add(r, ACTION_WATCH);
    r->generations[slot] = ++r->next_id;
    r->watch_lost[slot] = false;
    a->watch.slot = slot;
    a->watch.generation = r->generations[slot];
    a->watch.key = key;
    a->watch.from_revision = from;
}

void action_unwatch(struct rendezvous *r, enum watch_slot slot) {
    if (!r->generations[slot])
        return;
    r->generations[slot] = 0;
    action_add(r, ACTION_UNWATCH)->watch.slot = slot;
}

/* --- keys --- */

struct store_key key_of(const struct rendezvous *r, enum key_kind kind, const char *uid) {
    struct store_key key = {.kind = kind};
    memcpy(key.inc, r->cur.inc, sizeof(key.inc));
    memcpy(key.uid, uid, strlen(uid) + 1);
    return key;
}

struct store_key key_job(const struct rendezvous *r, enum key_kind kind) {
    return key_of(r, kind, "");
}

struct store_key key_own(const struct rendezvous *r, enum key_kind kind) {
    return key_of(r, kind, r->session.uid);
}

struct store_key key_all(const struct rendezvous *r, enum key_kind kind) {
    struct store_key key = key_job(r, kind);
    key.scope = KEYS_ALL;
    return key;
}

/* --- transactions --- */

struct draft *draft_new(struct rendezvous *r) {
    struct draft *d = arena_new(&r->arena, struct draft);
    d->arena = &r->arena;
    return d;
}

/* Room for one more; most transactions have one or two of each. */
static void *grow(struct arena *arena, void *array, size_t n, size_t *cap, size_t size) {
    if (n < *cap)
        return array;
    *cap = *cap ? *cap * 4 : 2;
    void *larger = arena_alloc(arena, *cap * size);
    return n ? memcpy(larger, array, n * size) : larger;
}

static struct compare *compare_add(struct draft *d, struct store_key key) {
    assert(d->n_compares < TXN_COMPARES_MAX);
    d->compares =
        grow(d->arena, d->compares, d->n_compares, &d->cap_compares, sizeof(*d->compares));
    struct compare *c = &d->compares[d->n_compares++];
    c->key = key;
    return c;
}

void draft_compare(struct draft *d, struct store_key key, enum compare_target target,
                   int64_t equals) {
    struct compare *c = compare_add(d, key);
    c->target = target;
    c->relation = COMPARE_EQUAL;
    c->number = equals;
}

void draft_compare_below(struct draft *d, struct store_key key, int64_t mod_below) {
    struct compare *c = compare_add(d, key);
    c->target = COMPARE_MOD;
    c->relation = COMPARE_LESS;
    c->number = mod_below;
}

void draft_compare_session(struct rendezvous *r, struct draft *d) {
    draft_compare(d, key_own(r, KEY_SESSION), COMPARE_CREATE, r->session.revision);
}

static struct op *op_add(struct draft *d, struct store_key key) {
    assert(d->n_ops < TXN_OPS_MAX);
    d->ops = grow(d->arena, d->ops, d->n_ops, &d->cap_ops, sizeof(*d->ops));
    struct op *op = &d->ops[d->n_ops++];
    op->key = key;
    return op;
}

union value *draft_put(struct rendezvous *r, struct draft *d, struct store_key key) {
    union value *v = arena_alloc(&r->arena, value_size(key.kind));
    struct op *op = op_add(d, key);
    op->put = true;
    op->value = v;
    return v;
}

void draft_delete(struct draft *d, struct store_key key) {
    op_add(d, key);
}

size_t draft_ops(const struct draft *d) {
    return d->n_ops;
}

struct txn draft_txn(const struct rendezvous *r, const struct draft *d) {
    return (struct txn){.compares = d->compares,
                        .n_compares = d->n_compares,
                        .ops = d->ops,
                        .n_ops = d->n_ops,
                        .lease = key_lease(r->cur.inc)};
}

/* --- requests --- */

bool request_may(struct rendezvous *r, const struct request *q) {
    if (q->id)
        return false;
    if (r->now.monotonic_ns < q->retry_ns)
        wake_at(r, q->retry_ns);
    return r->now.monotonic_ns >= q->retry_ns;
}

void request_txn(struct rendezvous *r, struct request *q, const struct draft *d) {
    struct action *a = action_add(r, ACTION_TXN);
    q->id = a->txn.id = ++r->next_id;
    q->floor = r->known_revision;
    q->settled = false;
    a->txn.txn = draft_txn(r, d);
}

void request_snapshot(struct rendezvous *r, struct request *q, const struct store_key *keys,
                      size_t n) {
    struct action *a = action_add(r, ACTION_SNAPSHOT);
    assert(n <= SNAPSHOT_KEYS_MAX);
    q->id = a->snapshot.id = ++r->next_id;
    q->floor = r->known_revision;
    q->head = r->head_revision;
    q->lead = r->lead_seen;
    q->settled = false;
    memcpy(a->snapshot.keys, keys, n * sizeof(*keys));
    a->snapshot.n = n;
}

bool request_reply(struct rendezvous *r, struct request *q, uint64_t id, bool reached) {
    if (!q->id || q->id != id)
        return false;
    q->id = 0;
    q->settled = reached;
    q->retry_ns = reached ? 0 : r->now.monotonic_ns + rendezvous_timing(r).hb_ns;
    return true;
}

bool request_read(struct rendezvous *r, struct request *q, const struct event *ev) {
    return request_reply(r, q, ev->snapshot.id, ev->snapshot.reached) && ev->snapshot.reached;
}

void request_rest(struct rendezvous *r, struct request *q) {
    q->retry_ns = r->now.monotonic_ns + rendezvous_timing(r).hb_ns;
}

const struct entry *snapshot_find(const struct event *ev, enum key_kind kind) {
    for (size_t i = 0; i < ev->snapshot.n; i++)
        if (ev->snapshot.entries[i].key.kind == kind)
            return &ev->snapshot.entries[i];
    return NULL;
}

/* --- time and chance --- */

void wake_at(struct rendezvous *r, int64_t monotonic_ns) {
    if (monotonic_ns < r->wake_ns)
        r->wake_ns = monotonic_ns;
}

void wake_at_boottime(struct rendezvous *r, int64_t boottime_ns) {
    wake_at(r, r->now.monotonic_ns + (boottime_ns - r->now.boottime_ns));
}

void uid_draw(struct rendezvous *r, char uid[UID_SIZE]) {
    unsigned long long high = rand_u64(&r->rand), low = rand_u64(&r->rand);
    snprintf(uid, UID_SIZE, "%016llx%016llx", high, low);
}
