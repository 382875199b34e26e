/* seen: all that a core asks for as one number, to the last field and word. */
#pragma once

#include "agent/core/canonical.h"
#include "agent/core/rendezvous.h"

#include <stdint.h>

static uint64_t seen;

static inline void see(uint64_t word) {
    seen = canonical_mix(seen, word);
}

static inline void see_text(const char *s) {
    for (; s && *s; s++)
        see((unsigned char)*s);
    see(s ? UINT64_MAX : UINT64_MAX - 1);
}

static inline void see_key(const struct store_key *k) {
    see((uint64_t)k->kind << 8 | k->scope);
    see((uint64_t)k->round);
    see_text(k->inc);
    see_text(k->pid);
    see_text(k->uid);
}

/* By its fields: what lies between them is any. */
static inline void see_failure(const struct failure *f) {
    see_text(f->uid);
    see_text(f->node);
    see((uint64_t)f->rank);
    see((uint64_t)f->local_rank);
    see((uint64_t)f->pid);
    see((uint64_t)f->wait_status);
    see_text(f->error);
    see((uint64_t)f->realtime_ns);
}

static inline void see_timing(const struct timing *t) {
    see((uint64_t)t->hb_ns);
    see((uint64_t)t->fence_ns);
    see((uint64_t)t->hard_ns);
    see((uint64_t)t->suspect_ns);
}

static inline void see_cur(const struct cur_value *v) {
    see_text(v->inc);
    see_text(v->attempt);
    see_text(v->former);
    see((uint64_t)v->rounds_before);
    see((uint64_t)v->hold);
    see((uint64_t)v->min << 32 | (uint64_t)v->max);
    see((uint64_t)v->max_restarts << 32 | (uint64_t)v->max_free_rounds);
    see((uint64_t)v->restart_mode << 32 | v->on_node_loss);
    see_timing(&v->timing);
}

static inline void see_member(const struct member_value *v) {
    see_text(v->node);
    see_text(v->addr);
    see_text(v->role);
    see((uint64_t)v->slots << 32 | (uint64_t)v->seat);
    see((uint64_t)v->want);
    see((uint64_t)v->last_round);
    see_text(v->past.inc);
    see((uint64_t)v->past.round);
    see((uint64_t)v->past.n << 32 | (uint64_t)v->past.restarts);
    see((uint64_t)v->past.member);
    see((uint64_t)v->stop_ns);
}

static inline void see_head(const struct head_value *v) {
    see((uint64_t)v->round);
    see((uint64_t)v->phase);
    see_text(v->pid);
    see((uint64_t)v->n);
    see((uint64_t)v->last_round);
    see_text(v->last_pid);
    see((uint64_t)v->last_n);
    see((uint64_t)v->restarts);
    see((uint64_t)v->charged_round);
    see((uint64_t)v->free_rounds);
    see((uint64_t)v->free_age_ms);
    see((uint64_t)v->brief_rounds);
    see((uint64_t)v->cause);
    see_failure(&v->failure);
    see((uint64_t)v->world);
    see_text(v->master_addr);
    see((uint64_t)v->master_port);
    see_text(v->token);
    see((uint64_t)v->outcome);
}

static inline void see_value(enum key_kind kind, const union value *v) {
    switch (kind) {
    case KEY_CUR:
        see_cur(&v->cur);
        break;
    case KEY_MEMBER:
        see_member(&v->member);
        break;
    case KEY_SESSION:
        see((uint64_t)v->session.seq);
        break;
    case KEY_GONE:
        see((uint64_t)v->gone.why);
        break;
    case KEY_LEAD:
        see_text(v->lead.uid);
        break;
    case KEY_PLAN:
        see((uint64_t)v->plan.group_rank << 32 | (uint64_t)v->plan.rank_base);
        see((uint64_t)v->plan.role_rank_base << 32 | (uint64_t)v->plan.role_world);
        see((uint64_t)v->plan.world);
        break;
    case KEY_HEAD:
        see_head(&v->head);
        break;
    case KEY_ACK:
        see((uint64_t)v->ack.why << 32 | (uint64_t)v->ack.port);
        see_text(v->ack.error);
        see_text(v->ack.addr);
        break;
    case KEY_DONE:
        see((uint64_t)v->done.round);
        break;
    case KEY_QUARANTINE:
        see((uint64_t)v->quarantine.owed);
        break;
    case KEY_INCARNATION:
        break;
    }
}

static inline void see_txn(const struct txn *t) {
    for (size_t i = 0; i < t->n_compares; i++) {
        see_key(&t->compares[i].key);
        see((uint64_t)t->compares[i].target << 32 | t->compares[i].relation);
        see((uint64_t)t->compares[i].number);
    }
    for (size_t i = 0; i < t->n_ops; i++) {
        see_key(&t->ops[i].key);
        see(t->ops[i].put);
        if (t->ops[i].put)
            see_value(t->ops[i].key.kind, t->ops[i].value);
    }
    see((uint64_t)t->lease);
}

static inline void see_round(const struct round_spec *s) {
    see_text(s->run_id);
    see((uint64_t)s->round);
    see((uint64_t)s->group_rank << 32 | (uint64_t)s->group_world);
    see((uint64_t)s->rank_base << 32 | (uint64_t)s->local_world);
    see((uint64_t)s->world);
    see_text(s->role);
    see((uint64_t)s->role_rank_base << 32 | (uint64_t)s->role_world);
    see_text(s->master_addr);
    see((uint64_t)s->master_port);
    see((uint64_t)s->restart_count << 32 | (uint64_t)s->max_restarts);
    see_text(s->token);
    see(s->deadline_required);
    see((uint64_t)s->fence_ns);
    see((uint64_t)s->hard_ns);
    see(s->lifeline);
}

static inline void see_watch(const struct action *a) {
    see((uint64_t)a->watch.slot);
    if (a->kind == ACTION_UNWATCH)
        return;
    see(a->watch.generation);
    see_key(&a->watch.key);
    see((uint64_t)a->watch.from_revision);
}

static inline void see_lifeline(const struct action *a) {
    see(a->lifeline.id);
    if (a->kind == ACTION_LIFELINE_DROP)
        return;
    see_text(a->lifeline.claim.inc);
    see_text(a->lifeline.claim.uid);
    see((uint64_t)a->lifeline.claim.revision);
}

static inline void see_exit(const struct action *a) {
    see((uint64_t)a->exit.code);
    see_text(a->exit.text);
    if (a->exit.failure)
        see_failure(a->exit.failure);
    see((uint64_t)a->exit.round);
    see((uint64_t)a->exit.earlier << 1 | a->exit.outcome);
}

static inline void see_request(const struct tree_request *q) {
    see((uint64_t)q->verb << 32 | q->exist);
    see_text(q->key);
    see_text(q->value);
    see_text(q->compare);
    see((uint64_t)q->ttl_s);
    see((uint64_t)q->dir << 1 | q->refresh);
    see((uint64_t)q->from_index);
    see((uint64_t)q->timeout_ms);
}

static inline void see_of_legacy(const struct action *a) {
    if (a->kind == ACTION_LOOK_UP) {
        see_text(a->look_up.host);
        see((uint64_t)a->look_up.round);
        return;
    }
    if (a->kind == ACTION_TREE)
        see_request(&a->tree.request);
    see(a->tree.id);
}

static inline void see_action(const struct action *a) {
    see((uint64_t)a->kind);
    switch (a->kind) {
    case ACTION_SNAPSHOT:
        see(a->snapshot.id);
        for (size_t i = 0; i < a->snapshot.n; i++)
            see_key(&a->snapshot.keys[i]);
        break;
    case ACTION_WATCH:
    case ACTION_UNWATCH:
        see_watch(a);
        break;
    case ACTION_TXN:
        see(a->txn.id);
        see_txn(&a->txn.txn);
        break;
    case ACTION_LEASE_GRANT:
    case ACTION_LEASE_KEEPALIVE:
        see(a->lease.id);
        see((uint64_t)a->lease.lease);
        see(a->kind == ACTION_LEASE_GRANT ? (uint64_t)a->lease.ttl_s : 0);
        break;
    case ACTION_BEAT:
        see((uint64_t)a->beat.seq);
        see_txn(&a->beat.txn);
        break;
    case ACTION_DEADLINE:
        see((uint64_t)a->deadline.fence_ns);
        see((uint64_t)a->deadline.hard_ns);
        break;
    case ACTION_START:
        see_round(a->start);
        break;
    case ACTION_STOP:
        see((uint64_t)a->stop.signo);
        see((uint64_t)a->stop.grace_ms);
        break;
    case ACTION_TIMER:
        see((uint64_t)a->timer.at_ns);
        break;
    case ACTION_CLAIM:
        see_text(a->claim.what);
        see((uint64_t)a->claim.round);
        break;
    case ACTION_LOG:
        see_text(a->log);
        break;
    case ACTION_STORE:
        see_text(a->store.text);
        see(a->store.lost);
        break;
    case ACTION_LIFELINE_OPEN:
    case ACTION_LIFELINE_DROP:
        see_lifeline(a);
        break;
    case ACTION_EXIT:
        see_exit(a);
        break;
    case ACTION_KILL:
    case ACTION_NEED_PORT:
        break;
    case ACTION_TREE:
    case ACTION_TREE_CANCEL:
    case ACTION_LOOK_UP:
        see_of_legacy(a);
        break;
    }
}
