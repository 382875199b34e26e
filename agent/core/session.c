/* One session of this agent: find or make the incarnation, join it, beat, and begin again when it
 * was revoked. */
#include "agent/core/state.h"

#include <stdio.h>
#include <string.h>

void session_init(struct rendezvous *r) {
    struct session *s = &r->session;
    uid_draw(r, s->uid);
    r->holder.rank = 1 + (int)rand_below(&r->rand, 16);
    s->phase = SESSION_READ_CUR;
}

bool session_armed(const struct rendezvous *r) {
    return !(r->cur.max == 1 && r->config.store_in_process);
}

bool session_in_time(const struct rendezvous *r) {
    return !session_armed(r) || (r->session.deadline_ns > r->now.boottime_ns);
}

static void deadline_extend(struct rendezvous *r, int64_t sent_boottime_ns) {
    struct session *s = &r->session;
    const struct timing *t = &r->cur.timing;
    int64_t deadline_ns = sent_boottime_ns + t->fence_ns;
    if (!session_armed(r) || deadline_ns <= s->deadline_ns)
        return;
    s->deadline_ns = deadline_ns;
    struct action *a = action_add(r, ACTION_DEADLINE);
    a->deadline.fence_ns = deadline_ns;
    a->deadline.hard_ns = deadline_ns + (t->hard_ns - t->fence_ns);
}

static void session_active(struct rendezvous *r, int64_t revision) {
    struct session *s = &r->session;
    s->phase = SESSION_ACTIVE;
    s->revision = revision;
    s->ever = true;
    watch_note_past(r);
    action_claim(r, CLAIM_JOIN, r->head.round);
}

/* What has come to nothing is begun again at once, but a second time not before the next beat: a
 * store may do nothing that it says it does. */
static void pace(struct rendezvous *r) {
    struct session *s = &r->session;
    int64_t now_ns = r->now.monotonic_ns;
    if (s->again)
        s->request.retry_ns = now_ns + rendezvous_timing(r).hb_ns;
    else
        contact_rest(r, now_ns);
    s->again = true;
}

/* --- finding the incarnation --- */

static bool attempts_differ(const struct rendezvous *r) {
    return r->config.attempt[0] && r->cur.attempt[0] &&
           strcmp(r->config.attempt, r->cur.attempt) != 0;
}

static void say_difference(struct rendezvous *r) {
    const struct rendezvous_config *c = &r->config;
    if (c->min != r->cur.min || c->max != r->cur.max || c->max_restarts != r->cur.max_restarts)
        action_log(
            r,
            "run \"%s\" was begun with nodes %d:%d and max_restarts %d; that holds, not this "
            "agent's %d:%d and %d",
            c->run_id, r->cur.min, r->cur.max, r->cur.max_restarts, c->min, c->max,
            c->max_restarts);
}

static void inc_adopt(struct rendezvous *r, const struct entry *e) {
    struct session *s = &r->session;
    if (!r->has_cur || strcmp(r->cur.inc, e->value->cur.inc) != 0) {
        r->head_revision = r->lead_revision = r->lead_seen = r->places_head = 0;
        memset(&r->head, 0, sizeof(r->head));
        memset(r->lead, 0, sizeof(r->lead));
        /* What was asked about the former one is not waited for: that it is not there any more
         * would be taken for an absence here. */
        r->reread = (struct request){0};
        r->charge.round = 0;
        r->standby = (struct standby){0};
        r->past.member = r->past.round > 0 && r->past.round == r->group.round;
        if (e->value->cur.former[0])
            r->past = (struct past){0}; /* a new attempt has a new budget */
        r->known_revision = 0;
        r->known_since = r->next_id + 1;
        group_init(r);
    }
    r->cur = e->value->cur;
    r->has_cur = true;
    s->created = strcmp(r->cur.inc, s->new_inc) == 0;
    s->former.set &= !s->created;
    say_difference(r);
    s->phase = SESSION_READ_HEAD;
}

/* A new one every time: the last one offered may have been taken without an answer, and forgotten
 * by a store that came back empty. An incarnation that is made twice would be two. */
static void inc_offer(struct rendezvous *r) {
    struct session *s = &r->session;
    snprintf(s->new_inc, sizeof(s->new_inc), "%016llx", (unsigned long long)rand_u64(&r->rand));
    s->phase = SESSION_GRANT;
}

static void cur_read(struct rendezvous *r, const struct event *ev) {
    const struct entry *cur = snapshot_find(ev, KEY_CUR);
    r->session.quarantine = snapshot_find(ev, KEY_QUARANTINE) != NULL;
    if (cur) {
        inc_adopt(r, cur);
        return;
    }
    r->session.former.set = false;
    inc_offer(r);
    if (r->session.offered)
        pace(r);
    r->session.offered = true;
}

int64_t session_lease_ttl_s(const struct timing *t) {
    int64_t ttl_s = 10 * t->suspect_ns / 1000000000;
    return ttl_s > 60 ? ttl_s : 60;
}

static void grant(struct rendezvous *r) {
    struct action *a = action_add(r, ACTION_LEASE_GRANT);
    r->session.request.id = a->lease.id = ++r->next_id;
    a->lease.lease = key_lease(r->session.new_inc);
    a->lease.ttl_s = session_lease_ttl_s(&r->config.timing);
}

/* What T0 says of the incarnation it replaces. Unless that is closed and settled: none of its
 * sessions has beaten since it was read, and from now on none can. As that was suspect ago, all of
 * them are dead, as of any that is revoked. With the sessions goes all else, so that what was sent
 * under it and comes late is refused. */
static void former_end(struct rendezvous *r, struct draft *d) {
    const struct former *f = &r->session.former;
    draft_compare(d, key_job(r, KEY_HEAD), COMPARE_MOD, f->head_revision);
    if (f->settled)
        return;
    draft_compare_below(d, key_all(r, KEY_SESSION), f->revision + 1);
    draft_delete(d, key_all(r, KEY_INCARNATION));
}

/* This very incarnation: every one has a lease of its own. Its revision would not do: a store that
 * came back empty counts from 1 again, and may have come to the same number. */
static void compare_cur(struct rendezvous *r, struct draft *d) {
    draft_compare(d, (struct store_key){.kind = KEY_CUR}, COMPARE_LEASE, key_lease(r->cur.inc));
}

/* T0. A store may have come back empty since it was read: then it is read again. */
static void cur_put(struct rendezvous *r) {
    const struct rendezvous_config *c = &r->config;
    struct draft *d = draft_new(r);
    if (r->session.former.set)
        compare_cur(r, d);
    else
        draft_compare(d, (struct store_key){.kind = KEY_CUR}, COMPARE_VERSION, 0);
    if (!r->session.quarantine)
        draft_compare(d, (struct store_key){.kind = KEY_QUARANTINE}, COMPARE_VERSION, 0);
    struct cur_value *v = &draft_put(r, d, (struct store_key){.kind = KEY_CUR})->cur;
    memcpy(v->inc, r->session.new_inc, sizeof(v->inc));
    if (r->session.former.set) {
        former_end(r, d);
        memcpy(v->former, r->cur.inc, sizeof(v->former));
        v->rounds_before = r->session.former.round;
    }
    v->hold = r->session.quarantine;
    v->max_free_rounds = c->max_free_rounds;
    snprintf(v->attempt, sizeof(v->attempt), "%s", c->attempt);
    v->min = c->min;
    v->max = c->max;
    v->max_restarts = c->max_restarts;
    v->restart_mode = c->restart_mode;
    v->on_node_loss = c->on_node_loss;
    v->timing = c->timing;
    request_txn(r, &r->session.request, d);
    r->actions[r->n_actions - 1].txn.txn.lease = key_lease(v->inc);
}

/* --- joining --- */

/* It is in use, or its ending takes too long. */
static void refuse_id(struct rendezvous *r, const char *why) {
    action_exit(
        r, 64,
        arena_printf(&r->arena,
                     "run id \"%s\" is in use by attempt \"%s\"%s; end that run, wait until "
                     "it has, or give another --rdzv-id",
                     r->config.run_id, r->cur.attempt, why),
        NULL);
}

/* An incarnation of another attempt: closed, or maybe left behind by agents that are all dead. What
 * is said of it is in its keys, all of which are read once. */
static void former_begin(struct rendezvous *r) {
    struct former *f = &r->session.former;
    bool closed = r->head.phase == HEAD_CLOSED;
    bool late = r->now.monotonic_ns - r->start_ns > r->config.join_timeout_ns;
    if (f->live && (!closed || late)) {
        refuse_id(r, closed ? ", whose agents have not ended" : "");
        return;
    }
    memset(&r->head, 0, sizeof(r->head));
    r->session.phase = SESSION_READ_FORMER;
}

static void former_read(struct rendezvous *r, const struct event *ev) {
    struct former *f = &r->session.former;
    struct view v = {0};
    bool sessions = false;
    view_load(&v, ev->snapshot.entries, ev->snapshot.n, ev->snapshot.revision, r->now.monotonic_ns);
    view_settle(&v);
    for (size_t i = 0; i < v.n; i++)
        sessions |= v.members[i]->session;
    bool closed = v.head.phase == HEAD_CLOSED, settled = budget_settled(&v);
    *f = (struct former){.set = true,
                         .settled = closed && settled,
                         .revision = ev->snapshot.revision,
                         .head_revision = v.head_revision,
                         .round = v.head.round > r->cur.rounds_before ? v.head.round
                                                                      : r->cur.rounds_before,
                         .not_before_ns = r->now.monotonic_ns};
    if (!f->settled && (sessions || !settled)) {
        long long ms = r->cur.timing.suspect_ns / 1000000;
        f->not_before_ns += r->cur.timing.suspect_ns;
        action_log(r,
                   "run id \"%s\" is held by attempt \"%s\": it is replaced unless an agent of it "
                   "is heard within %lld.%lld s",
                   r->config.run_id, r->cur.attempt, ms / 1000, ms % 1000 / 100);
    }
    contact_rest(r, f->not_before_ns);
    view_fini(&v);
    inc_offer(r);
}

/* Head and lead as they are before the join: a closed run is not joined. */
static void head_read(struct rendezvous *r, const struct event *ev) {
    watch_take(r, ev);
    if (attempts_differ(r)) {
        former_begin(r);
    } else if (r->head.phase != HEAD_CLOSED) {
        watch_begin(r, ev->snapshot.revision);
        r->session.phase = SESSION_JOIN;
    }
}

/* T1; counts as beat 0. */
static void join(struct rendezvous *r) {
    const struct rendezvous_config *c = &r->config;
    struct draft *d = draft_new(r);
    compare_cur(r, d);
    draft_compare(d, key_own(r, KEY_SESSION), COMPARE_VERSION, 0);
    draft_compare(d, key_own(r, KEY_GONE), COMPARE_VERSION, 0);
    draft_put(r, d, key_own(r, KEY_SESSION));
    struct member_value *m = &draft_put(r, d, key_own(r, KEY_MEMBER))->member;
    snprintf(m->node, sizeof(m->node), "%s", c->node);
    snprintf(m->addr, sizeof(m->addr), "%s", c->addr);
    snprintf(m->role, sizeof(m->role), "%s", c->role);
    m->slots = c->slots;
    m->seat = c->seat;
    m->want = c->want;
    m->last_round = r->group.round;
    m->stop_ns = group_stop_ns(r);
    if (strcmp(r->past.inc, r->cur.inc) != 0)
        m->past = r->past;
    r->session.join_sent_boottime_ns = r->now.boottime_ns;
    r->session.beat_next_ns = r->now.monotonic_ns + r->cur.timing.hb_ns;
    request_txn(r, &r->session.request, d);
}

static void session_renew(struct rendezvous *r) {
    struct session *s = &r->session;
    lifeline_drop(r);
    uid_draw(r, s->uid);
    s->phase = SESSION_READ_CUR;
    s->revision = 0;
    s->beat_out = false;
    s->request = (struct request){.retry_ns = s->request.retry_ns};
    s->leave = (struct request){0};
    group_new_session(r);
    pace(r);
}

static void join_check(struct rendezvous *r, const struct event *ev) {
    const struct entry *own = snapshot_find(ev, KEY_SESSION);
    if (own) {
        r->session.beat_next_ns = r->now.monotonic_ns;
        session_active(r, own->create_revision);
    } else {
        session_renew(r);
    }
}

/* --- beats --- */

/* T2. */
static void beat_send(struct rendezvous *r) {
    struct session *s = &r->session;
    struct draft *d = draft_new(r);
    draft_compare_session(r, d);
    draft_put(r, d, key_own(r, KEY_SESSION))->session.seq = ++s->beat_seq;
    struct action *a = action_add(r, ACTION_BEAT);
    a->beat.seq = s->beat_seq;
    a->beat.txn = draft_txn(r, d);
    s->beat_out = true;
    s->beat_sent_boottime_ns = r->now.boottime_ns;
    s->beat_next_ns = r->now.monotonic_ns + r->cur.timing.hb_ns;
}

static void beat_advance(struct rendezvous *r) {
    struct session *s = &r->session;
    if (s->beat_out || r->giving_up || s->leave.id || s->leave.settled)
        return;
    if (r->now.monotonic_ns >= s->beat_next_ns)
        beat_send(r);
    if (!s->beat_out)
        wake_at(r, s->beat_next_ns);
}

static void session_lost(struct rendezvous *r) {
    r->session.phase = SESSION_LOST;
    action_claim(r, CLAIM_LOST, r->group.round);
    action_log(r,
               "the session was revoked (silent for too long): workers are killed, joining again");
    group_kill(r);
}

static void beat_applied(struct rendezvous *r) {
    struct session *s = &r->session;
    s->good_ns = r->now.monotonic_ns;
    s->again = s->offered = false;
    deadline_extend(r, s->beat_sent_boottime_ns);
}

void session_beat(struct rendezvous *r, const struct event *ev) {
    struct session *s = &r->session;
    if (!s->beat_out || ev->beat.seq != s->beat_seq)
        return;
    s->beat_out = false;
    if (ev->beat.result != BEAT_FAILED)
        contact_made(r, true);
    else
        contact_missed(r, true);
    if (s->phase != SESSION_ACTIVE)
        return;
    if (ev->beat.result == BEAT_APPLIED)
        beat_applied(r);
    else if (ev->beat.result == BEAT_REFUSED && s->leave_since_ns)
        s->leave.settled = true; /* the leave was applied, its reply did not come */
    else if (ev->beat.result == BEAT_REFUSED)
        session_lost(r);
}

/* --- events and what follows --- */

void session_snapshot(struct rendezvous *r, const struct event *ev) {
    struct session *s = &r->session;
    if (!request_read(r, &s->request, ev))
        return;
    if (s->phase == SESSION_READ_CUR)
        cur_read(r, ev);
    else if (s->phase == SESSION_READ_HEAD)
        head_read(r, ev);
    else if (s->phase == SESSION_READ_FORMER)
        former_read(r, ev);
    else if (s->phase == SESSION_CHECK)
        join_check(r, ev);
}

void session_done(struct rendezvous *r, const struct event *ev) {
    struct session *s = &r->session;
    leave_done(r, ev);
    if (!request_reply(r, &s->request, ev->done.id, ev->done.reached))
        return;
    if (s->phase == SESSION_GRANT && ev->done.reached && !ev->done.applied)
        s->request.retry_ns = r->now.monotonic_ns + r->config.timing.hb_ns;
    else if (s->phase == SESSION_GRANT && ev->done.reached)
        s->phase = SESSION_PUT_CUR;
    else if (s->phase == SESSION_PUT_CUR) {
        s->former.live = s->former.set && ev->done.reached && !ev->done.applied;
        s->phase = SESSION_READ_CUR;
    } else if (s->phase == SESSION_JOIN)
        s->phase = SESSION_CHECK;
    if (s->phase == SESSION_CHECK && ev->done.reached && ev->done.applied) {
        session_active(r, ev->done.revision);
        deadline_extend(r, s->join_sent_boottime_ns);
    }
}

static void request_next(struct rendezvous *r) {
    struct session *s = &r->session;
    struct store_key curs[2] = {{.kind = KEY_CUR}, {.kind = KEY_QUARANTINE}};
    struct store_key both[2] = {key_job(r, KEY_HEAD), key_job(r, KEY_LEAD)};
    struct store_key own = key_own(r, KEY_SESSION), all = key_all(r, KEY_INCARNATION);
    switch (s->phase) {
    case SESSION_READ_CUR:
        request_snapshot(r, &s->request, curs, 2);
        break;
    case SESSION_GRANT:
        grant(r);
        break;
    case SESSION_PUT_CUR:
        if (!s->former.set || r->now.monotonic_ns >= s->former.not_before_ns)
            cur_put(r);
        else
            wake_at(r, s->former.not_before_ns);
        break;
    case SESSION_READ_HEAD:
        request_snapshot(r, &s->request, both, 2);
        break;
    case SESSION_READ_FORMER:
        request_snapshot(r, &s->request, &all, 1);
        break;
    case SESSION_JOIN:
        join(r);
        break;
    case SESSION_CHECK:
        request_snapshot(r, &s->request, &own, 1);
        break;
    case SESSION_ACTIVE:
    case SESSION_LOST:
        break;
    }
}

void session_advance(struct rendezvous *r) {
    struct session *s = &r->session;
    contact_advance(r);
    if (leave_due(r)) {
        leave_advance(r);
        /* The host of the store must know whether there is a job whose agents it keeps waiting. */
        bool looks = r->config.hosts_store && s->phase == SESSION_READ_CUR;
        if ((s->phase != SESSION_ACTIVE && !looks) || r->over)
            return;
    }
    if (s->phase == SESSION_LOST && r->group.state == GROUP_IDLE)
        session_renew(r);
    if (s->phase == SESSION_ACTIVE)
        beat_advance(r);
    else if (s->phase != SESSION_LOST && !r->over && request_may(r, &s->request))
        request_next(r);
}
