#include "harness/explore/boxes.h"

#include "agent/core/kv_request.h"

#include <stdlib.h>
#include <string.h>

/* Requests of the agents, as bytes that the store takes; the judge sees them as the core wrote
 * them.
 */

void message_free(struct message *m) {
    if (!m || --m->refs)
        return;
    arena_fini(&m->arena);
    canonical_fini(&m->seen);
    free(m);
}

/* What of a compare makes states differ. */
static void see_compare(struct message *m, const struct compare *from) {
    bool beat = from->key.kind == KEY_SESSION && from->target == COMPARE_MOD;
    canonical_key(&m->seen, &from->key);
    m->seen.hash = canonical_mix(m->seen.hash, from->target);
    /* "Less than n + 1" is "not more than n", and n is a revision that others know as well. */
    int64_t number = from->number - (from->relation == COMPARE_LESS);
    canonical_order(&m->seen, beat ? canonical_beats_of(from->key.uid) : CANONICAL_REVISION,
                    from->target == COMPARE_VERSION ? 0 : number);
}

static void take_txn(struct message *m, const struct txn *txn) {
    m->txn = kv_request_txn(&m->arena, "job", txn, kv_request_plain);
    m->ops = arena_array(&m->arena, struct op, txn->n_ops);
    m->n_ops = txn->n_ops;
    for (size_t i = 0; i < txn->n_compares; i++)
        see_compare(m, &txn->compares[i]);
    for (size_t i = 0; i < txn->n_ops; i++) {
        struct op *op = &m->ops[i];
        *op = txn->ops[i];
        canonical_key(&m->seen, &op->key);
        if (!op->put)
            continue;
        op->value = (const void *)m->txn.success[i].value.data; /* the core keeps it no longer */
        canonical_value(&m->seen, op->key.kind, op->value);
    }
}

static void take_keys(struct message *m, const struct key *keys, size_t n) {
    m->txn = kv_request_read(&m->arena, "job", keys, n);
    for (size_t i = 0; i < n; i++)
        canonical_key(&m->seen, &keys[i]);
}

static void fill(struct message *m, const struct action *a) {
    if (a->kind == ACTION_SNAPSHOT) {
        m->kind = MESSAGE_SNAPSHOT;
        m->id = a->snapshot.id;
        take_keys(m, a->snapshot.keys, a->snapshot.n);
    } else if (a->kind == ACTION_TXN || a->kind == ACTION_BEAT) {
        bool beat = a->kind == ACTION_BEAT;
        const struct txn *txn = beat ? &a->beat.txn : &a->txn.txn;
        m->kind = beat ? MESSAGE_BEAT : MESSAGE_TXN;
        m->id = beat ? (uint64_t)a->beat.seq : a->txn.id;
        take_txn(m, txn);
    } else {
        m->kind = a->kind == ACTION_LEASE_GRANT ? MESSAGE_GRANT : MESSAGE_KEEPALIVE;
        m->id = a->lease.id;
        m->lease = a->lease.lease;
        m->ttl_s = a->lease.ttl_s;
        m->seen.hash = canonical_mix(m->seen.hash, (uint64_t)m->lease);
    }
}

void message_act(struct world *w, int node, const struct action *a) {
    struct node *n = &w->nodes[node];
    struct message *m = calloc(1, sizeof(*m));
    if (!m)
        abort(); /* out of memory */
    const char *uid = rendezvous_uid(n->core->r);
    m->refs = 1;
    memcpy(m->uid, uid, strlen(uid));
    fill(m, a);
    m->seen.hash = canonical_mix(m->seen.hash, m->kind);
    canonical_bytes(&m->seen, m->uid, sizeof(m->uid));
    if (n->n_pending == PENDING_MAX) {
        world_violation(w, "n%d waits for more than %d answers", node, PENDING_MAX);
        message_free(m);
        return;
    }
    n->pending[n->n_pending++] = (struct pending){.message = m, .sent_ns = w->now_ns};
}

void message_drop(struct world *w, int node, int index) {
    struct node *n = &w->nodes[node];
    message_free(n->pending[index].message);
    n->n_pending--;
    memmove(n->pending + index, n->pending + index + 1,
            sizeof(n->pending[0]) * (size_t)(n->n_pending - index));
    memset(&n->pending[n->n_pending], 0, sizeof(n->pending[0]));
}

/* --- answers --- */

static struct pending take(struct world *w, int node, int index) {
    struct pending p = w->nodes[node].pending[index];
    p.message->refs++;
    message_drop(w, node, index);
    return p;
}

static void tell(struct world *w, int node, const struct pending *p, bool reached) {
    const struct message *m = p->message;
    struct event ev = {.kind = EVENT_DONE};
    if (m->kind == MESSAGE_BEAT) {
        ev.kind = EVENT_BEAT;
        ev.beat.seq = (int64_t)m->id;
        ev.beat.result = !reached ? BEAT_FAILED : p->applied ? BEAT_APPLIED : BEAT_REFUSED;
    } else if (m->kind == MESSAGE_SNAPSHOT) {
        ev.kind = EVENT_SNAPSHOT; /* only without an answer; the rest is in read_now */
        ev.snapshot.id = m->id;
    } else {
        ev.done.id = m->id;
        ev.done.reached = reached;
        ev.done.applied = p->applied;
        ev.done.revision = p->revision;
    }
    agent_event(w, node, &ev);
}

void message_reply(struct world *w, int node, int index) {
    struct pending p = take(w, node, index);
    tell(w, node, &p, true);
    message_free(p.message);
}

/* One that is still under way goes on without anybody who waits for it. */
void message_timeout(struct world *w, int node, int index) {
    struct pending *in = &w->nodes[node].pending[index];
    struct pending p = *in;
    p.message->refs++;
    if (in->held && in->message->kind < MESSAGE_SNAPSHOT)
        in->ghost = true;
    else
        message_drop(w, node, index);
    p.applied = false;
    tell(w, node, &p, false);
    message_free(p.message);
}

/* --- at the store --- */

static bool entry_read(struct arena *a, const struct kv_pair *p, struct entry *ret) {
    *ret = (struct entry){.create_revision = p->create_revision,
                          .mod_revision = p->mod_revision,
                          .version = p->version};
    if (!key_parse(p->key.data, p->key.len, "job", &ret->key))
        return false;
    union value *v = arena_new(a, union value);
    memcpy(v, p->value.data, p->value.len);
    ret->value = v;
    return true;
}

/* Read and told in one: whoever hears of it later has watches that are as late. */
static void read_now(struct world *w, int node, int index) {
    struct pending p = take(w, node, index);
    struct arena arena = {0};
    struct kv_txn_result r = {0};
    size_t n = 0, at = 0;
    kv_txn(w->store->kv, &p.message->txn, &arena, &r, NULL); /* changes nothing */
    for (size_t i = 0; i < r.n_results; i++)
        n += r.results[i].n_pairs;
    struct entry *entries = arena_array(&arena, struct entry, n);
    for (size_t i = 0; i < r.n_results; i++)
        for (size_t k = 0; k < r.results[i].n_pairs; k++)
            at += entry_read(&arena, &r.results[i].pairs[k], &entries[at]);
    struct event ev = {.kind = EVENT_SNAPSHOT};
    ev.snapshot.id = p.message->id;
    ev.snapshot.reached = true;
    ev.snapshot.revision = kv_revision(w->store->kv);
    ev.snapshot.entries = entries;
    ev.snapshot.n = at;
    agent_event(w, node, &ev);
    arena_fini(&arena);
    message_free(p.message);
}

static void on_change(void *arg, const struct kv_event *event) {
    stream_append(arg, event);
}

static void apply_txn(struct world *w, int node, struct pending *p) {
    const struct message *m = p->message;
    struct kv *kv = world_store(w);
    struct arena arena = {0};
    struct kv_txn_result r = {0};
    int64_t before = kv_revision(kv);
    int rc = kv_txn(kv, &m->txn, &arena, &r, NULL);
    p->applied = rc == 0 && r.succeeded;
    p->revision = kv_revision(kv);
    arena_fini(&arena);
    world_say(w, node, "%s%s", m->kind == MESSAGE_BEAT ? "beat" : "request",
              p->applied ? "" : " refused");
    if (p->revision > before) {
        kv_each_event(kv, p->revision, on_change, w);
        kv_compact(kv, p->revision, NULL);
    }
    if (p->applied)
        judge_txn(world_judge(w), m->uid, m->ops, m->n_ops);
    w->beat_seen |= m->kind == MESSAGE_BEAT && p->applied;
}

static void apply_lease(struct world *w, struct pending *p) {
    struct kv *kv = world_store(w);
    const struct message *m = p->message;
    int64_t id, ttl;
    int rc = m->kind == MESSAGE_GRANT ? kv_lease_grant(kv, m->lease, m->ttl_s, 0, &id, NULL)
                                      : kv_lease_keepalive(kv, m->lease, 0, &ttl, NULL);
    p->applied = !rc || rc == KV_LEASE_EXISTS;
    p->revision = kv_revision(kv);
}

void message_serve(struct world *w, int node, int index, bool answer) {
    struct pending *p = &w->nodes[node].pending[index];
    if (p->message->kind == MESSAGE_SNAPSHOT) {
        read_now(w, node, index);
        return;
    }
    if (p->message->kind == MESSAGE_GRANT || p->message->kind == MESSAGE_KEEPALIVE)
        apply_lease(w, p);
    else
        apply_txn(w, node, p);
    p->held = false;
    if (p->ghost) {
        message_drop(w, node, index);
        return;
    }
    p->answered = !p->deaf;
    if (answer && p->answered)
        message_reply(w, node, index);
}

/* Sending, applying and hearing of it commute with all that others do at this moment, as long as
 * nothing of it is late; what is late is a choice of its own. */
void message_beat(struct world *w, int node) {
    struct node *n = &w->nodes[node];
    int index = n->n_pending - 1;
    while (index >= 0 && n->pending[index].message->kind != MESSAGE_BEAT)
        index--;
    if (index < 0 || n->cut)
        return;
    struct pending *p = &n->pending[index];
    enum beat_way way = w->beat_way;
    w->beat_seen = true;
    w->beat_way = BEAT_PROMPT;
    if (way == BEAT_LATE) {
        p->held = true;
        return;
    }
    p->slow = way == BEAT_SLOW;
    p->deaf = way == BEAT_LOST;
    message_serve(w, node, index, way == BEAT_PROMPT);
}
