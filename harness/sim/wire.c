/* The simulated network between agents and store: what is sent arrives late, twice or not at
 * all. */
#include "harness/sim/history_writer.h"

#include "agent/core/kv_request.h"
#include "base/str.h"

#include <string.h>

/* --- the wire --- */

/* A request with its reply, or the changes that a watch saw (ACTION_WATCH, too). */
struct sim_wire {
    struct arena arena;
    struct sim_wire *next; /* among the spares */
    enum action_kind kind;
    uint64_t patience;   /* the number of the end of the sender's patience, 0: it is planned */
    int64_t patience_ns; /* when that is */
    uint64_t id;         /* of a beat: its seq; of a watch and its changes: the generation */
    char uid[UID_SIZE];
    int era;       /* of the store that it was sent to */
    int64_t known; /* what its session knew of the run when it asked */
    struct kv_txn txn;
    struct op *ops; /* as the core wrote them, for the judge */
    size_t n_ops;
    int64_t lease, ttl_s;
    enum watch_slot slot;
    struct kv_bytes from, end;
    int64_t from_revision;
    bool applied, refused;
    struct kv_txn_result reply;
    struct entry *entries;
    size_t n_entries;
    int64_t revision;
};

static struct sim_wire *wire_new(struct sim *c, enum action_kind kind, uint64_t id) {
    struct sim_wire *w = c->spares;
    struct arena kept = {0};
    if (w) {
        c->spares = w->next;
        kept = w->arena;
    } else {
        w = pool_take(&c->pool, sizeof(*w));
    }
    *w = (struct sim_wire){.arena = kept, .kind = kind, .id = id};
    return w;
}

static bool writes(const struct sim_wire *w) {
    return w->kind == ACTION_TXN || w->kind == ACTION_BEAT;
}

static void wire_drop(struct sim *c, void *payload) {
    struct sim_wire *w = payload;
    arena_clear(&w->arena);
    w->next = c->spares;
    c->spares = w;
}

void sim_wire_fini(struct sim *c) {
    while (c->spares) {
        struct sim_wire *w = c->spares;
        c->spares = w->next;
        arena_fini(&w->arena);
        pool_give(&c->pool, w, sizeof(*w));
    }
}

/* Asked when there is a message: it is dropped where this is true. */
static bool is_barred(struct sim *c, int node, int64_t until_ns) {
    if (until_ns <= c->now_ns)
        return false;
    history_writer_dropped(c, node);
    return true;
}

bool sim_node_is_cut(struct sim *c, int node) {
    return is_barred(c, node, c->nodes[node].cut_until_ns);
}

static bool is_deaf(struct sim *c, int node) {
    return is_barred(c, node, c->nodes[node].deaf_until_ns);
}

static bool is_lost(struct sim *c, int node) {
    return sim_node_is_cut(c, node) ||
           (!c->calm_now && sim_chance(&c->nodes[node].wire, c->schedule->loss));
}

int64_t sim_delay_ns(struct sim *c, int node) {
    struct rand *r = &c->nodes[node].wire;
    if (!c->calm_now && sim_chance(r, c->schedule->late))
        return sim_chance_ns(r, 50 * SIM_MS, 4000 * SIM_MS);
    return sim_chance_ns(r, SIM_MS / 5,
                         sim_chance(r, 50) ? 60 * SIM_MS
                         : c->calm_now     ? 3 * SIM_MS
                                           : c->schedule->slow_ns);
}

static int64_t later(int64_t a_ns, int64_t b_ns) {
    return a_ns > b_ns ? a_ns : b_ns;
}

static int64_t answer_delay(struct sim *c, int node) {
    int64_t delay_ns = sim_delay_ns(c, node); /* drawn first, by any compiler */
    return delay_ns + sim_chance_ns(&c->nodes[node].wire, 0, c->schedule->slow_answer_ns);
}

static bool entry_read(void *sim, struct arena *a, const struct kv_pair *p, bool deleted,
                       struct entry *ret) {
    *ret = kv_request_revisions(p, deleted);
    if (!sim_traffic_key(sim, p->key, &ret->key))
        return false;
    if (!deleted)
        ret->value = memcpy(arena_alloc(a, p->value.len), p->value.data, p->value.len);
    return true;
}

/* --- replies --- */

static bool pending_take(struct sim_node *n, uint64_t id) {
    for (size_t i = 0; i < sizeof(n->pending) / sizeof(*n->pending); i++) {
        if (n->pending[i] == id) {
            n->pending[i] = 0;
            return true;
        }
    }
    return false;
}

static void pending_add(struct sim *c, struct sim_node *n, uint64_t id) {
    for (size_t i = 0; i < sizeof(n->pending) / sizeof(*n->pending); i++) {
        if (!n->pending[i]) {
            n->pending[i] = id;
            return;
        }
    }
    sim_violation(c, "the core asks for more than 64 things at once");
}

static bool beat_take(struct sim_node *n, uint64_t seq) {
    bool waits = n->beat_pending == (int64_t)seq;
    if (waits)
        n->beat_pending = 0;
    return waits;
}

static bool is_session(const struct sim *c, int node, const char *uid) {
    return *uid && strcmp(rendezvous_uid(c->nodes[node].core), uid) == 0;
}

static bool is_of_job(const struct sim *c, const struct entry *e) {
    const char *inc = e->key.kind == KEY_CUR ? e->value->cur.inc : e->key.inc;
    return strcmp(inc, c->judge.inc) == 0;
}

/* Reads show what was known of the run when they were asked for, or another store's past. */
static void note_revision(struct sim *c, int node, const struct sim_wire *w) {
    bool ours = w->kind == ACTION_TXN && w->applied;
    if (!is_session(c, node, w->uid))
        return;
    for (size_t i = 0; i < w->n_entries; i++)
        ours |= is_of_job(c, &w->entries[i]);
    if (!ours)
        return;
    judge_heard(&c->judge, node, w->uid, w->revision);
    if (w->kind != ACTION_SNAPSHOT || w->revision >= w->known)
        return;
    sim_mark(c, SIM_MARK_STORE_SET_BACK);
    judge_strange(&c->judge, node, w->revision, w->known);
}

/* What comes after the end of the sender's patience is thrown away, and tells it nothing. */
static void reply_event(struct sim *c, int node, const struct sim_wire *w, bool reached) {
    struct sim_node *n = &c->nodes[node];
    if (!(w->kind == ACTION_BEAT ? beat_take(n, w->id) : pending_take(n, w->id)))
        return;
    if (reached && writes(w))
        judge_answered(&c->judge, node, w->refused);
    if (reached)
        note_revision(c, node, w);
    struct event ev =
        kv_request_event(w->kind, w->id, reached && !w->refused, w->applied, w->revision);
    if (ev.kind == EVENT_SNAPSHOT) {
        ev.snapshot.entries = w->entries;
        ev.snapshot.n = w->n_entries;
    }
    sim_agent_event(c, node, &ev);
}

static void on_timeout(struct sim *c, struct occurrence *o) {
    struct sim_wire w = {.kind = (enum action_kind)o->a, .id = (uint64_t)o->b};
    reply_event(c, o->node, &w, false);
}

/* Most requests are answered in time: only for those that are not the end of the sender's patience
 * is an occurrence, with the number that it has had since the request was sent. */
static void lose_patience(struct sim *c, int node, struct sim_wire *w) {
    if (!w->patience)
        return;
    struct occurrence *o = sim_plan_agent_as(c, w->patience, w->patience_ns, node, on_timeout);
    o->a = w->kind;
    o->b = (int64_t)w->id;
    w->patience = 0;
}

/* A sender that was stopped may find that it has waited for too long. */
static void on_reply(struct sim *c, struct occurrence *o) {
    struct sim_wire *w = o->payload;
    if (sim_node_is_cut(c, o->node) || is_deaf(c, o->node) || w->era != c->store->era)
        lose_patience(c, o->node, w);
    else
        reply_event(c, o->node, w, !w->patience || w->patience_ns > c->now_ns);
}

/* --- watches --- */

static void on_lost(struct sim *c, struct occurrence *o) {
    struct event ev = {.kind = EVENT_WATCH_LOST};
    ev.watch_lost.slot = (enum watch_slot)o->a;
    ev.watch_lost.generation = (uint64_t)o->b;
    sim_agent_event(c, o->node, &ev);
}

void sim_stream_stall(struct sim *c, int node, enum watch_slot slot, int64_t span_ns) {
    struct sim_stream *s = &c->nodes[node].streams[slot];
    if (!s->generation || s->broken)
        return;
    s->broken = true;
    s->watch = kv_watch_free(s->watch);
    struct occurrence *o = sim_plan_agent(c, c->now_ns + span_ns, node, on_lost);
    o->a = slot;
    o->b = (int64_t)s->generation;
}

static void stream_close(struct sim_node *n, enum watch_slot slot) {
    n->streams[slot].watch = kv_watch_free(n->streams[slot].watch);
    n->streams[slot] = (struct sim_stream){0};
}

/* What an earlier watch of the slot had on its way comes too: the agent has to know it by its
 * generation. */
static void on_delivery(struct sim *c, struct occurrence *o) {
    const struct sim_wire *w = o->payload;
    const struct sim_stream *s = &c->nodes[o->node].streams[w->slot];
    bool former = s->generation != w->id;
    if (!former && s->broken)
        return;
    if (sim_node_is_cut(c, o->node) || is_deaf(c, o->node)) {
        if (!former) {
            sim_mark(c, SIM_MARK_WATCH_LOST);
            sim_stream_break(c, o->node, w->slot);
        }
        return;
    }
    sim_mark_heard(c, o->node, w->entries, w->n_entries);
    if (!former && w->n_entries && is_session(c, o->node, w->uid))
        judge_heard(&c->judge, o->node, w->uid, w->entries[w->n_entries - 1].mod_revision);
    struct event ev = {.kind = EVENT_CHANGES,
                       .changes = {w->slot, w->id, w->revision, w->entries, w->n_entries}};
    sim_agent_event(c, o->node, &ev);
}

static void stream_deliver(struct sim *c, int node, enum watch_slot slot) {
    struct sim_stream *s = &c->nodes[node].streams[slot];
    struct kv_event *events;
    size_t n = 0;
    struct sim_wire *w = wire_new(c, ACTION_WATCH, s->generation);
    str_copy(w->uid, UID_SIZE, rendezvous_uid(c->nodes[node].core));
    int rc = kv_watch_take(s->watch, 0, &w->arena, &events, &n);
    sim_mark_if(c, SIM_MARK_WATCH_COMPACTED, rc == KV_COMPACTED);
    if (rc || is_lost(c, node)) {
        wire_drop(c, w);
        sim_stream_break(c, node, slot);
        return;
    }
    sim_traffic_events(c, events, n);
    w->slot = slot;
    w->entries = arena_array(&w->arena, struct entry, n);
    for (size_t i = 0; i < n; i++)
        w->n_entries +=
            entry_read(c, &w->arena, &events[i].pair, events[i].deleted, &w->entries[w->n_entries]);
    int64_t at_ns = later(c->now_ns + sim_delay_ns(c, node), c->nodes[node].answers_from_ns);
    s->last_ns = later(at_ns, s->last_ns);
    struct occurrence *o = sim_plan_agent(c, s->last_ns, node, on_delivery);
    o->payload = w;
    o->drop = wire_drop;
}

void sim_wire_fan_out(struct sim *c) {
    struct kv_watch *w;
    while ((w = kv_watch_ready(c->store->kv))) {
        const struct sim_stream *s = kv_watch_owner(w);
        stream_deliver(s->job, s->node, s->slot);
    }
}

/* --- the store --- */

static void store_read(struct sim *c, struct sim_wire *w) {
    kv_txn(c->store->kv, &w->txn, &w->arena, &w->reply, NULL);
    w->entries = kv_request_entries(&w->arena, &w->reply, entry_read, c, &w->n_entries);
}

static void store_lease(struct sim *c, struct sim_wire *w) {
    int64_t id, ttl;
    int rc = w->kind == ACTION_LEASE_GRANT
                 ? kv_lease_grant(c->store->kv, w->lease, w->ttl_s, c->now_ns, &id, NULL)
                 : kv_lease_keepalive(c->store->kv, w->lease, c->now_ns, &ttl, NULL);
    w->applied = !rc || rc == KV_LEASE_EXISTS;
    struct sim_store *s = c->store;
    if (w->kind == ACTION_LEASE_GRANT && !rc)
        s->leases[s->n_leases < LEASES_MAX ? s->n_leases++ : LEASES_MAX - 1] = w->lease;
}

static void store_watch(struct sim *c, int node, const struct sim_wire *w) {
    struct sim_stream *s = &c->nodes[node].streams[w->slot];
    if (s->generation != w->id || s->broken || s->watch)
        return;
    s->job = c;
    s->node = node;
    s->slot = w->slot;
    s->watch = kv_watch_new(c->store->kv, w->from, w->end, w->from_revision, s);
}

static void applied(struct sim *c, const struct occurrence *o, const struct sim_wire *w) {
    const struct sim_node *n = &c->nodes[o->node];
    c->result->transactions++;
    if (w->kind == ACTION_TXN && (!n->core || o->a != (int64_t)n->shown.life))
        sim_mark(c, SIM_MARK_APPLIED_LATE);
    sim_judge_txn(c, w->uid, w->ops, w->n_ops);
    if (w->kind == ACTION_TXN && c->n_armed)
        sim_faults_applied(c, o->node);
}

/* A request comes to the store; its sender may be long gone. */
static void on_arrival(struct sim *c, struct occurrence *o) {
    struct sim_wire *w = o->payload;
    struct sim_node *n = &c->nodes[o->node];
    if (w->era != c->store->era) {
        if (n->core && o->a == (int64_t)n->shown.life)
            lose_patience(c, o->node, w);
        return;
    }
    sim_leases_expire(c);
    w->refused = writes(w) && c->store->full_until_ns > c->now_ns;
    if (writes(w) && !w->refused) {
        w->applied =
            kv_txn(c->store->kv, &w->txn, &w->arena, &w->reply, NULL) == 0 && w->reply.succeeded;
        if (w->applied)
            applied(c, o, w);
        else if (w->n_ops)
            sim_mark_refused(c, w->uid, &w->ops[0], w->patience_ns - 2 * c->judge.job.timing.hb_ns);
    } else if (w->kind == ACTION_SNAPSHOT) {
        store_read(c, w);
    } else if (w->kind == ACTION_WATCH) {
        if (n->core && o->a == (int64_t)n->shown.life)
            store_watch(c, o->node, w);
    } else if (!writes(w)) {
        store_lease(c, w);
    }
    sim_traffic_request(c, &w->txn, &w->reply);
    w->revision = kv_revision(c->store->kv);
    sim_wire_fan_out(c);
    if (c->store->compact_until_ns > c->now_ns)
        kv_compact(c->store->kv, w->revision, NULL);
    if (w->kind == ACTION_WATCH || !n->core || o->a != (int64_t)n->shown.life)
        return;
    if (is_lost(c, o->node) || is_deaf(c, o->node)) {
        lose_patience(c, o->node, w);
        if (w->kind == ACTION_TXN && w->applied)
            sim_mark(c, SIM_MARK_ANSWER_LOST);
        return;
    }
    int64_t reply_ns = later(c->now_ns + answer_delay(c, o->node), n->answers_from_ns);
    if (reply_ns >= w->patience_ns)
        lose_patience(c, o->node, w);
    struct occurrence *reply = sim_plan_agent(c, reply_ns, o->node, on_reply);
    reply->payload = w;
    reply->drop = wire_drop;
    o->drop = NULL;
}

/* The client's own patience: hb for a beat, a little more for the rest. */
static void wire_send(struct sim *c, int node, struct sim_wire *w) {
    struct sim_node *n = &c->nodes[node];
    bool beat = w->kind == ACTION_BEAT;
    memcpy(w->uid, rendezvous_uid(n->core), strlen(rendezvous_uid(n->core)) + 1);
    w->known = judge_known(&c->judge, node, w->uid);
    w->era = c->store->era;
    if (w->kind != ACTION_WATCH) {
        w->patience = sim_number(c);
        w->patience_ns = c->now_ns + (beat ? 1 : 2) * c->judge.job.timing.hb_ns;
        if (beat)
            n->beat_pending = (int64_t)w->id;
        else
            pending_add(c, n, w->id);
    }
    if (is_lost(c, node) || n->mute_until_ns > c->now_ns) {
        if (w->kind == ACTION_WATCH)
            sim_stream_break(c, node, w->slot);
        lose_patience(c, node, w);
        wire_drop(c, w);
        return;
    }
    int64_t at_ns = later(c->now_ns + sim_delay_ns(c, node), n->requests_from_ns);
    struct occurrence *o = sim_plan(c, at_ns, node, on_arrival);
    o->a = (int64_t)n->shown.life;
    o->payload = w;
    o->drop = wire_drop;
    if (o->at_ns >= w->patience_ns)
        lose_patience(c, node, w);
}

/* --- what the core asks for --- */

static void send_watch(struct sim *c, int node, const struct action *a) {
    struct sim_node *n = &c->nodes[node];
    struct sim_wire *w = wire_new(c, ACTION_WATCH, a->watch.generation);
    stream_close(n, a->watch.slot);
    n->streams[a->watch.slot].generation = a->watch.generation;
    w->slot = a->watch.slot;
    w->from = kv_request_key(&w->arena, c->run_id, &a->watch.key, &w->end);
    w->from_revision = a->watch.from_revision;
    wire_send(c, node, w);
}

/* The judge is shown what the core wrote. */
static void send_request(struct sim *c, int node, const struct action *a) {
    struct sim_wire *w = wire_new(c, a->kind, kv_request_id(a));
    const struct txn *txn = kv_request_writes(a);
    if (txn) {
        w->txn = kv_request_txn(&w->arena, c->run_id, txn, kv_request_plain);
        w->ops = kv_request_ops(&w->arena, txn, &w->txn);
        w->n_ops = txn->n_ops;
    } else if (a->kind == ACTION_SNAPSHOT) {
        w->txn = kv_request_read(&w->arena, c->run_id, a->snapshot.keys, a->snapshot.n);
    } else {
        w->lease = a->lease.lease;
        w->ttl_s = a->lease.ttl_s;
    }
    wire_send(c, node, w);
}

void sim_wire_act(struct sim *c, int node, const struct action *a) {
    if (a->kind == ACTION_WATCH)
        send_watch(c, node, a);
    else if (a->kind == ACTION_UNWATCH)
        stream_close(&c->nodes[node], a->watch.slot);
    else
        send_request(c, node, a);
}

void sim_wire_close(struct sim *c, int node) {
    for (int i = 0; i < WATCH_SLOTS; i++)
        stream_close(&c->nodes[node], (enum watch_slot)i);
}
