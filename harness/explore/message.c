/* Requests of the agents, as bytes that the store takes; the judge sees them as the core wrote
 * them. */
#include "harness/explore/copy_on_write.h"

#include "agent/core/kv_request.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void message_free(struct explore_message *m) {
    if (!m || --m->refs)
        return;
    arena_fini(&m->arena);
    canonical_fini(&m->seen);
    free(m);
}

bool message_writes(const struct explore_message *m) {
    return m->kind == ACTION_TXN || m->kind == ACTION_BEAT;
}

/* What of a compare makes states differ. */
static void see_compare(struct explore_message *m, const struct compare *from) {
    bool beat = from->key.kind == KEY_SESSION && from->target == COMPARE_MOD;
    canonical_key(&m->seen, &from->key);
    m->seen.hash = canonical_mix(m->seen.hash, from->target);
    /* "Less than n + 1" is "not more than n", and n is a revision that others know as well. */
    int64_t number = from->number - (from->relation == COMPARE_LESS);
    canonical_order(&m->seen, beat ? canonical_beats_of(from->key.uid) : CANONICAL_REVISION,
                    from->target == COMPARE_VERSION ? 0 : number);
}

static void take_txn(struct explore_message *m, const struct txn *txn) {
    m->txn = kv_request_txn(&m->arena, "job", txn, kv_request_plain);
    m->ops = kv_request_ops(&m->arena, txn, &m->txn);
    m->n_ops = txn->n_ops;
    for (size_t i = 0; i < txn->n_compares; i++)
        see_compare(m, &txn->compares[i]);
    for (size_t i = 0; i < txn->n_ops; i++) {
        canonical_key(&m->seen, &m->ops[i].key);
        if (m->ops[i].put)
            canonical_value(&m->seen, m->ops[i].key.kind, m->ops[i].value);
    }
}

static void fill(struct explore_message *m, const struct action *a) {
    m->kind = a->kind;
    m->id = kv_request_id(a);
    if (message_writes(m)) {
        take_txn(m, kv_request_writes(a));
    } else if (a->kind == ACTION_SNAPSHOT) {
        m->txn = kv_request_read(&m->arena, "job", a->snapshot.keys, a->snapshot.n);
        for (size_t i = 0; i < a->snapshot.n; i++)
            canonical_key(&m->seen, &a->snapshot.keys[i]);
    } else {
        m->lease = a->lease.lease;
        m->ttl_s = a->lease.ttl_s;
        m->seen.hash = canonical_mix(m->seen.hash, (uint64_t)m->lease);
    }
}

void message_act(struct world *w, int node, const struct action *a) {
    struct explore_node *n = &w->nodes[node];
    struct explore_message *m = mem_new(struct explore_message);
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
    struct explore_node *n = &w->nodes[node];
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

/* Of a read only that there was no answer: the rest is in read_now. */
static void tell(struct world *w, int node, const struct pending *p, bool reached) {
    const struct explore_message *m = p->message;
    struct event ev = kv_request_event(m->kind, m->id, reached, p->applied, p->revision);
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
    if (in->held && message_writes(in->message))
        in->ghost = true;
    else
        message_drop(w, node, index);
    p.applied = false;
    tell(w, node, &p, false);
    message_free(p.message);
}

/* --- at the store --- */

static bool entry_read(void *arg, struct arena *a, const struct kv_pair *p, bool deleted,
                       struct entry *ret) {
    *ret = kv_request_revisions(p, deleted);
    ret->value = memcpy(arena_new(a, union value), p->value.data, p->value.len);
    return key_parse(p->key.data, p->key.len, "job", &ret->key);
}

/* Read and told in one: whoever hears of it later has watches that are as late. */
static void read_now(struct world *w, int node, int index) {
    struct pending p = take(w, node, index);
    struct kv *kv = w->store->kv;
    ARENA_FINI struct arena arena = {0};
    struct kv_txn_result r = {0};
    kv_txn(kv, &p.message->txn, &arena, &r, NULL); /* changes nothing */
    struct event ev = kv_request_event(ACTION_SNAPSHOT, p.message->id, true, true, kv_revision(kv));
    ev.snapshot.entries = kv_request_entries(&arena, &r, entry_read, NULL, &ev.snapshot.n);
    agent_event(w, node, &ev);
    message_free(p.message);
}

static void on_change(void *arg, const struct kv_event *event) {
    stream_append(arg, event);
}

static void apply_txn(struct world *w, int node, struct pending *p) {
    const struct explore_message *m = p->message;
    struct kv *kv = world_store(w);
    ARENA_FINI struct arena arena = {0};
    struct kv_txn_result r = {0};
    int64_t before = kv_revision(kv);
    int rc = kv_txn(kv, &m->txn, &arena, &r, NULL);
    p->applied = rc == 0 && r.succeeded;
    p->revision = kv_revision(kv);
    world_say(w, node, "%s%s", m->kind == ACTION_BEAT ? "beat" : "request",
              p->applied ? "" : " refused");
    if (p->revision > before) {
        kv_each_event(kv, p->revision, on_change, w);
        kv_compact(kv, p->revision, NULL);
    }
    if (p->applied)
        judge_txn(world_judge(w), m->uid, m->ops, m->n_ops);
    w->beat_seen |= m->kind == ACTION_BEAT && p->applied;
}

static void apply_lease(struct world *w, struct pending *p) {
    struct kv *kv = world_store(w);
    const struct explore_message *m = p->message;
    int64_t id, ttl;
    int rc = m->kind == ACTION_LEASE_GRANT ? kv_lease_grant(kv, m->lease, m->ttl_s, 0, &id, NULL)
                                           : kv_lease_keepalive(kv, m->lease, 0, &ttl, NULL);
    p->applied = !rc || rc == KV_LEASE_EXISTS;
    p->revision = kv_revision(kv);
}

void message_serve(struct world *w, int node, int index, bool answer) {
    struct pending *p = &w->nodes[node].pending[index];
    if (p->message->kind == ACTION_SNAPSHOT) {
        read_now(w, node, index);
        return;
    }
    if (message_writes(p->message))
        apply_txn(w, node, p);
    else
        apply_lease(w, p);
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
    struct explore_node *n = &w->nodes[node];
    int index = n->n_pending - 1;
    while (index >= 0 && n->pending[index].message->kind != ACTION_BEAT)
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
