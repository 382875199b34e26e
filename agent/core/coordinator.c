/* The coordinator's work around its decisions: to hold a view of the whole incarnation, to keep the
 * job's lease alive, and to clear away what no later round can need. */
#include "agent/core/state.h"

#include <string.h>

/* The view is also held by who may have to coordinate next, and by the host of the store that is to
 * end: it does so last. */
static bool is_needed(const struct rendezvous *r) {
    bool active = r->session.phase == SESSION_ACTIVE && (lead_is_own(r) || r->standby.on);
    return r->has_cur && (active || (r->config.hosts_store && leave_due(r)));
}

static void drop(struct rendezvous *r) {
    struct coordinator *c = &r->coordinator;
    view_fini(&c->view);
    action_unwatch(r, WATCH_ALL);
    memset(c, 0, sizeof(*c));
}

/* Another one leads now: what this one was about to do is over, what it knows is not. Its timers
 * begin anew should it lead again. */
static void resign(struct coordinator *c) {
    struct coordinator kept = {
        .read = c->read, .loaded = c->loaded, .view = c->view, .since_ns = c->since_ns};
    kept.view.changed = true;
    *c = kept;
}

static void read_all(struct rendezvous *r) {
    struct coordinator *c = &r->coordinator;
    struct store_key all = key_all(r, KEY_INCARNATION);
    if (request_may(r, &c->read))
        request_snapshot(r, &c->read, &all, 1);
}

void coordinator_snapshot(struct rendezvous *r, const struct event *ev) {
    struct coordinator *c = &r->coordinator;
    if (!request_read(r, &c->read, ev))
        return;
    if (r->watch_lost[WATCH_ALL])
        request_rest(r, &c->read);
    c->loaded = true;
    if (!c->since_ns)
        c->since_ns = r->now.monotonic_ns;
    c->view.gap_ns = r->cur.timing.fence_ns;
    view_load(&c->view, ev->snapshot.entries, ev->snapshot.n, ev->snapshot.revision,
              r->now.monotonic_ns);
    action_watch(r, WATCH_ALL, key_all(r, KEY_INCARNATION), ev->snapshot.revision + 1);
}

void coordinator_changes(struct rendezvous *r, const struct event *ev) {
    struct view *v = &r->coordinator.view;
    for (size_t i = 0; i < ev->changes.n; i++)
        view_apply(v, &ev->changes.entries[i], r->now.monotonic_ns);
    if (ev->changes.revision > v->revision)
        v->revision = ev->changes.revision;
}

static void lease_advance(struct rendezvous *r) {
    struct coordinator *c = &r->coordinator;
    if (!request_may(r, &c->lease))
        return;
    struct action *a = action_add(r, ACTION_LEASE_KEEPALIVE);
    c->lease.id = a->lease.id = ++r->next_id;
    a->lease.lease = key_lease(r->cur.inc);
}

static bool is_named(const struct view *v, const char *pid) {
    return strcmp(pid, v->head.pid) == 0 || strcmp(pid, v->head.last_pid) == 0;
}

/* A member that no plan of head names, and whose session is over. */
static void clean_members(struct rendezvous *r, struct draft *d) {
    const struct view *v = &r->coordinator.view;
    for (size_t i = 0; i < v->n && draft_ops(d) + 2 <= TXN_OPS_MAX; i++) {
        const struct member *m = v->members[i];
        if (m->session || m->rank_now >= 0 || m->rank_last >= 0)
            continue;
        if (m->gone)
            draft_delete(d, key_of(r, KEY_GONE, m->uid));
        if (m->known)
            draft_delete(d, key_of(r, KEY_MEMBER, m->uid));
    }
}

/* After RUN(r): acks and dones of earlier rounds, plans that head does not name any more, the
 * certificates of who is in neither. One transaction; what does not fit goes after the next RUN. */
static void clean_advance(struct rendezvous *r) {
    struct coordinator *c = &r->coordinator;
    const struct view *v = &c->view;
    if (v->head.phase != HEAD_RUN || c->cleaned_round == v->head.round ||
        !request_may(r, &c->clean))
        return;
    c->cleaned_round = v->head.round;
    struct draft *d = draft_new(r);
    struct store_key ack = key_job(r, KEY_ACK), done = key_job(r, KEY_DONE);
    draft_compare(d, key_job(r, KEY_LEAD), COMPARE_MOD, v->lead_revision);
    ack.scope = done.scope = KEYS_BELOW;
    ack.round = done.round = v->head.round;
    draft_delete(d, ack);
    draft_delete(d, done);
    for (size_t i = 0; i < v->n_plans && draft_ops(d) < TXN_OPS_MAX / 2; i++) {
        struct store_key plan = key_all(r, KEY_PLAN);
        memcpy(plan.pid, v->plans[i].pid, sizeof(plan.pid));
        if (!is_named(v, plan.pid))
            draft_delete(d, plan);
    }
    clean_members(r, d);
    request_txn(r, &c->clean, d);
}

void coordinator_done(struct rendezvous *r, const struct event *ev) {
    struct coordinator *c = &r->coordinator;
    c->view.changed = true;
    if (request_reply(r, &c->lease, ev->done.id, ev->done.reached) && ev->done.reached) {
        int64_t ttl_ns = 10 * r->cur.timing.suspect_ns;
        int64_t least_ns = 60 * 1000000000LL;
        c->lease.retry_ns = r->now.monotonic_ns + (ttl_ns > least_ns ? ttl_ns : least_ns) / 4;
    }
    request_reply(r, &c->clean, ev->done.id, ev->done.reached);
    if (!detector_done(r, ev))
        decide_done(r, ev);
}

/* Beats come by the thousand and change nothing: what all parts said when they were to look again
 * holds until then. */
static void work(struct rendezvous *r) {
    struct coordinator *c = &r->coordinator;
    int64_t others_ns = r->wake_ns;
    if (c->view.changed || r->now.monotonic_ns >= c->wake_ns) {
        r->wake_ns = INT64_MAX;
        c->view.changed = false;
        lease_advance(r);
        detector_advance(r);
        decide_advance(r);
        clean_advance(r);
        c->wake_ns = r->wake_ns;
        r->wake_ns = others_ns;
    }
    wake_at(r, c->wake_ns);
}

void coordinator_advance(struct rendezvous *r) {
    struct coordinator *c = &r->coordinator;
    if (!is_needed(r)) {
        if (c->loaded || c->read.id)
            drop(r);
        return;
    }
    if (!c->loaded || r->watch_lost[WATCH_ALL]) {
        read_all(r);
        return;
    }
    view_settle(&c->view);
    bool own = lead_is_own(r) && c->view.lead_revision == r->lead_revision;
    if (c->claimed && !own && !lead_is_own(r))
        resign(c);
    if (!own || r->over)
        return;
    if (!c->claimed) {
        c->claimed = true;
        action_claim(r, CLAIM_LEAD, c->view.head.round);
    }
    work(r);
}
