/* Head and lead, as every agent follows them: one watch each, and a new read whenever one of them
 * broke. A state older than the newest one seen is never taken back. */
#include "agent/core/state.h"

#include <string.h>

void watch_begin(struct rendezvous *r, int64_t revision) {
    action_watch(r, WATCH_HEAD, key_job(r, KEY_HEAD), revision + 1);
    action_watch(r, WATCH_LEAD, key_job(r, KEY_LEAD), revision + 1);
}

/* Kept for the case that the store forgets it; by those only who are in this run. */
void watch_note_past(struct rendezvous *r) {
    const struct head_value *h = &r->head;
    if (!h->last_round || r->session.phase != SESSION_ACTIVE)
        return;
    r->past = (struct past){.round = h->last_round, .n = h->last_n, .restarts = h->restarts};
    memcpy(r->past.inc, r->cur.inc, sizeof(r->past.inc));
}

/* The round that was acked as failed is settled; where it has cost one, the own failure did. That
 * restarts have grown says less: a node that comes may remember more of them. */
static void charge_note(struct rendezvous *r) {
    struct charge *c = &r->charge;
    if (!c->round || r->head.last_round <= c->round)
        return;
    c->count += r->head.charged_round >= c->round;
    c->round = 0;
}

/* The clock of the rounds that cost nothing: who comes to lead has seen the last one begin. */
static void rounds_note(struct rendezvous *r, enum head_phase before, int64_t last) {
    bool new = r->head.last_round != last;
    if (!r->cur.max_free_rounds)
        return;
    if (new)
        r->ran_ns = r->now.monotonic_ns;
    if (new || before == HEAD_RUN)
        r->ended_ns = r->now.monotonic_ns;
}

/* A run that is closed stays so for who has seen it, also when another attempt removes it. */
void watch_head_entry(struct rendezvous *r, const struct entry *e) {
    enum head_phase before = r->head.phase;
    int64_t last = r->head.last_round;
    if (e->mod_revision <= r->head_revision || before == HEAD_CLOSED)
        return;
    r->head_revision = e->mod_revision;
    if (e->deleted)
        memset(&r->head, 0, sizeof(r->head));
    else
        r->head = e->value->head;
    rounds_note(r, before, last);
    watch_note_past(r);
    charge_note(r);
    if (before == HEAD_RUN && r->head.phase != HEAD_RUN && r->head.phase != HEAD_CLOSED)
        action_claim(r, CLAIM_END, r->head.last_round);
    if (r->head.phase == HEAD_RUN)
        action_claim(r, CLAIM_RUN, r->head.round);
    if (r->head.phase == HEAD_CLOSED)
        action_claim(r, CLAIM_CLOSED, r->head.last_round);
}

void watch_lead_entry(struct rendezvous *r, const struct entry *e) {
    if (e->mod_revision <= r->lead_seen)
        return;
    r->lead_seen = e->mod_revision;
    r->lead_revision = e->deleted ? 0 : e->mod_revision;
    memset(r->lead, 0, sizeof(r->lead));
    if (!e->deleted)
        memcpy(r->lead, e->value->lead.uid, sizeof(r->lead));
}

void watch_advance(struct rendezvous *r) {
    if (!r->watch_lost[WATCH_HEAD] && !r->watch_lost[WATCH_LEAD])
        return;
    if (!request_may(r, &r->reread))
        return;
    /* The own session shows whether the store is in this run at all, were both not there. */
    struct store_key keys[3] = {key_job(r, KEY_HEAD), key_job(r, KEY_LEAD),
                                key_own(r, KEY_SESSION)};
    request_snapshot(r, &r->reread, keys, 3);
}

void watch_take(struct rendezvous *r, const struct event *ev) {
    const struct entry *head = snapshot_find(ev, KEY_HEAD), *lead = snapshot_find(ev, KEY_LEAD);
    const struct entry absent = {.deleted = true, .mod_revision = ev->snapshot.revision};
    if (head || r->head.phase != HEAD_NONE)
        watch_head_entry(r, head ? head : &absent);
    if (lead || r->lead_revision)
        watch_lead_entry(r, lead ? lead : &absent);
}

/* Nothing is taken of a snapshot that was asked for before the incarnation changed. */
void watch_snapshot(struct rendezvous *r, const struct event *ev) {
    if (!request_read(r, &r->reread, ev))
        return;
    for (size_t i = 0; i < ev->snapshot.n; i++)
        if (strcmp(ev->snapshot.entries[i].key.inc, r->cur.inc) != 0)
            return;
    watch_take(r, ev);
    watch_begin(r, ev->snapshot.revision);
    group_tell_again(r);
    request_rest(r, &r->reread);
}

/* --- own place in the plans --- */

/* Own place in the plans that head names. A plan is immutable and written before head names it, so
 * that one read of each is enough. */

const struct plan_place *place_in(const struct rendezvous *r, const char *pid) {
    for (int i = 0; i < 2; i++)
        if (pid[0] && r->places[i].known && strcmp(r->places[i].pid, pid) == 0)
            return &r->places[i];
    return NULL;
}

static bool is_head_plan(const struct rendezvous *r, const char *pid) {
    return strcmp(pid, r->head.pid) == 0 || strcmp(pid, r->head.last_pid) == 0;
}

static void place_keep(struct rendezvous *r, const char *pid, const struct plan_value *value) {
    struct plan_place *p = is_head_plan(r, r->places[0].pid) ? &r->places[1] : &r->places[0];
    memset(p, 0, sizeof(*p));
    memcpy(p->pid, pid, sizeof(p->pid));
    p->known = true;
    p->present = value != NULL;
    if (value)
        p->value = *value;
}

void place_advance(struct rendezvous *r) {
    struct store_key keys[2];
    size_t n = 0;
    if (r->session.phase != SESSION_ACTIVE || r->head.phase == HEAD_NONE ||
        r->places_head == r->head_revision || !request_may(r, &r->read_places))
        return;
    const char *pids[2] = {r->head.pid, r->head.last_pid};
    memset(r->asked_pids, 0, sizeof(r->asked_pids));
    for (int i = 0; i < 2; i++) {
        if (!pids[i][0] || place_in(r, pids[i]) || (i && strcmp(pids[0], pids[1]) == 0))
            continue;
        memcpy(r->asked_pids[n], pids[i], PID_SIZE);
        keys[n] = key_own(r, KEY_PLAN);
        memcpy(keys[n++].pid, pids[i], PID_SIZE);
    }
    if (n)
        request_snapshot(r, &r->read_places, keys, n);
    else
        r->places_head = r->head_revision;
}

/* What was asked for was named by head, so it was written: absent now is absent for ever. */
void place_snapshot(struct rendezvous *r, const struct event *ev) {
    if (!request_read(r, &r->read_places, ev))
        return;
    for (int i = 0; i < 2; i++) {
        const char *pid = r->asked_pids[i];
        const struct plan_value *found = NULL;
        if (!pid[0] || !is_head_plan(r, pid) || place_in(r, pid))
            continue;
        for (size_t k = 0; k < ev->snapshot.n; k++)
            if (strcmp(ev->snapshot.entries[k].key.pid, pid) == 0)
                found = &ev->snapshot.entries[k].value->plan;
        place_keep(r, pid, found);
    }
}
