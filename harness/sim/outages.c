/* What strikes the network, the store and its watches. */
#include "harness/sim/injections.h"

#include "agent/core/kv_request.h"

/* Answers are lost, requests are not: what was asked for happens, and nobody hears of it. */
bool inject_answers_lost(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    if (!n->core)
        return false;
    n->deaf_until_ns = c->now_ns + e->span_ns;
    sim_say(c, node, "FAULT: no answer reaches the node for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    return true;
}

/* Gone three times, and there twice in between. */
bool inject_flapping(struct sim *c, int node, const struct sim_entry *e) {
    sim_say(c, node, "FAULT: the node's network comes and goes for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    for (int i = 0; i < 3; i++)
        sim_cut_later(c, node, 2 * i * (e->span_ns / 5), e->span_ns / 5);
    return c->nodes[node].core != NULL;
}

bool inject_node_cut(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    n->cut_until_ns = c->now_ns + e->span_ns;
    sim_say(c, node, "FAULT: the node is cut off for %lld ms", (long long)(e->span_ns / SIM_MS));
    return n->core != NULL;
}

/* What strikes the store strikes all jobs in it. */
static void note_struck(struct sim *c, int64_t span_ns) {
    int64_t until_ns = c->now_ns + span_ns;
    for (int i = 0; i < c->store->n_jobs; i++) {
        struct judged_times *t = &c->store->jobs[i]->times;
        t->struck_until_ns = until_ns > t->struck_until_ns ? until_ns : t->struck_until_ns;
    }
}

static void job_away(struct sim *c, int64_t span_ns) {
    for (int i = 0; i < c->n_nodes; i++)
        c->nodes[i].cut_until_ns = c->now_ns + span_ns;
}

static void away(struct sim *c, int64_t span_ns) {
    sim_mark(c, span_ns > c->judge.job.timing.fence_ns ? SIM_MARK_STORE_AWAY_LONG
                                                       : SIM_MARK_STORE_AWAY_SHORT);
    for (int i = 0; i < c->store->n_jobs; i++)
        job_away(c->store->jobs[i], span_ns);
    note_struck(c, span_ns);
}

/* All at once: the store's own outage, a switch that reboots. */
bool inject_store_away(struct sim *c, int node, const struct sim_entry *e) {
    sim_say(c, node, "FAULT: nobody reaches the store for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    away(c, e->span_ns);
    return true;
}

static void job_lose_watches(struct sim *c) {
    sim_lifeline_forget(c);
    for (int i = 0; i < c->n_nodes; i++)
        for (int k = 0; k < WATCH_SLOTS; k++)
            sim_stream_break(c, i, (enum watch_slot)k);
}

static void lose_watches(struct sim *c) {
    for (int i = 0; i < c->store->n_jobs; i++)
        job_lose_watches(c->store->jobs[i]);
}

/* It comes back with its data, and knows no watch any more. */
bool inject_store_restart(struct sim *c, int node, const struct sim_entry *e) {
    sim_say(c, node, "FAULT: the store restarts, %lld ms", (long long)(e->span_ns / SIM_MS));
    away(c, e->span_ns);
    lose_watches(c);
    return true;
}

bool inject_watch_lost(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core)
        return false;
    sim_stream_break(c, node, (enum watch_slot)e->watch);
    return true;
}

/* The stream says nothing more; the agent notices later. */
void sim_stream_break(struct sim *c, int node, enum watch_slot slot) {
    sim_stream_stall(c, node, slot,
                     sim_chance_ns(&c->nodes[node].wire, SIM_MS, 2 * c->judge.job.timing.hb_ns));
}

/* A connection whose other end is gone, which the kernel finds out by its keepalive only. */
bool inject_watch_stalled(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    if (!n->core)
        return false;
    sim_say(c, node, "FAULT: the watch of head says nothing more");
    sim_stream_stall(c, node, WATCH_HEAD, e->span_ns);
    return true;
}

/* What is asked in this time is answered, and all answers come at its end. */
bool inject_answers_late(struct sim *c, int node, const struct sim_entry *e) {
    c->nodes[node].answers_from_ns = c->now_ns + e->span_ns;
    sim_say(c, node, "FAULT: answers come after %lld ms", (long long)(e->span_ns / SIM_MS));
    return c->nodes[node].core != NULL;
}

bool inject_requests_late(struct sim *c, int node, const struct sim_entry *e) {
    c->nodes[node].requests_from_ns = c->now_ns + e->span_ns;
    sim_say(c, node, "FAULT: requests come after %lld ms", (long long)(e->span_ns / SIM_MS));
    return c->nodes[node].core != NULL;
}

bool inject_requests_lost(struct sim *c, int node, const struct sim_entry *e) {
    c->nodes[node].mute_until_ns = c->now_ns + e->span_ns;
    sim_say(c, node, "FAULT: no request leaves the node for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    return c->nodes[node].core != NULL;
}

bool inject_store_compact(struct sim *c, int node, const struct sim_entry *e) {
    c->store->compact_until_ns = c->now_ns + e->span_ns;
    note_struck(c, e->span_ns);
    sim_say(c, node, "FAULT: the store forgets what was, for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    kv_compact(c->store->kv, kv_revision(c->store->kv), NULL);
    return true;
}

/* Leases are granted and kept alive, as by an etcd whose quota is used up. */
bool inject_store_full(struct sim *c, int node, const struct sim_entry *e) {
    c->store->full_until_ns = c->now_ns + e->span_ns;
    note_struck(c, e->span_ns);
    sim_say(c, node, "FAULT: the store writes nothing for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    return true;
}

static void keep_leases(struct sim *c, int64_t from_ns) {
    for (int i = 0; i < c->store->n_leases; i++)
        kv_lease_keepalive(c->store->kv, c->store->leases[i], from_ns, &(int64_t){0}, NULL);
}

/* Watches live on at the other members; who leads gives every lease its whole time again. */
bool inject_store_leader(struct sim *c, int node, const struct sim_entry *e) {
    sim_say(c, node, "FAULT: the store has no leader for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    away(c, e->span_ns);
    keep_leases(c, c->now_ns + e->span_ns);
    return true;
}

/* It knows that it has been there before. */
static void quarantine_put(struct sim *c) {
    union value v = {.quarantine = {1}};
    struct op op = {.key = {.kind = KEY_QUARANTINE}, .put = true, .value = &v};
    ARENA_FINI struct arena a = {0};
    struct kv_txn_result r;
    struct txn put = {.ops = &op, .n_ops = 1};
    struct kv_txn txn = kv_request_txn(&a, "", &put, kv_request_plain);
    kv_txn(c->store->kv, &txn, &a, &r, NULL);
}

bool inject_store_wiped(struct sim *c, int node, const struct sim_entry *e) {
    sim_say(c, node, "FAULT: the store comes back empty after %lld ms",
            (long long)(e->span_ns / SIM_MS));
    inject_store_restart(c, node, e);
    for (int i = 0; i < c->store->n_jobs; i++) {
        judge_wiped(&c->store->jobs[i]->judge);
        c->store->jobs[i]->judge.wiped.emptied_ns = c->now_ns;
    }
    sim_store_replace(c->store, kv_new(c->schedule->seed + (uint64_t)c->now_ns, 0));
    quarantine_put(c);
    return true;
}

static void set_back(struct sim *c, struct occurrence *o) {
    if (c->calm_now) {
        c->store->backup = kv_free(c->store->backup);
        return;
    }
    sim_say(c, o->node, "FAULT: the store is set back from revision %lld to %lld",
            (long long)kv_revision(c->store->kv), (long long)kv_revision(c->store->backup));
    away(c, 100 * SIM_MS);
    lose_watches(c);
    for (int i = 0; i < c->store->n_jobs; i++)
        judge_set_back(&c->store->jobs[i]->judge);
    sim_store_replace(c->store, c->store->backup);
    c->store->backup = NULL;
    c->store->era++;
    keep_leases(c, c->now_ns);
}

/* As an etcd that is restored from a backup. A store within an agent has none. */
bool inject_store_set_back(struct sim *c, int node, const struct sim_entry *e) {
    if (c->store->backup || c->judge.set_back || c->in_process || c->schedule->hosted)
        return false;
    sim_say(c, node, "FAULT: a backup of the store is made, to which it goes back in %lld ms",
            (long long)(e->span_ns / SIM_MS));
    c->store->backup = kv_copy(c->store->kv);
    sim_plan(c, c->now_ns + e->span_ns, node, set_back);
    return true;
}
