#include "agent/core/canonical.h"

#include "agent/core/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each function takes out of a copy what is a number, and hashes the rest. */

void canonical_fini(struct canonical *c) {
    free(c->numbers);
    memset(c, 0, sizeof(*c));
}

void canonical_clear(struct canonical *c) {
    c->hash = 0;
    c->n = 0;
}

/* The two halves of a 128 bit product: every bit of the word reaches every bit of the hash. */
uint64_t canonical_mix(uint64_t hash, uint64_t word) {
    unsigned __int128 p = (unsigned __int128)(hash ^ word ^ 0x9e3779b97f4a7c15u) *
                          (word ^ 0xe7037ed1a0b428dbu ^ (hash << 32 | hash >> 32));
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

void canonical_bytes(struct canonical *c, const void *p, size_t size) {
    const unsigned char *at = p;
    uint64_t word;
    for (; size >= sizeof(word); at += sizeof(word), size -= sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        c->hash = canonical_mix(c->hash, word);
    }
    if (!size)
        return;
    word = 0;
    memcpy(&word, at, size);
    c->hash = canonical_mix(c->hash, word);
}

static void text(struct canonical *c, const char *s) {
    canonical_bytes(c, s, strlen(s) + 1);
}

uint64_t canonical_beats_of(const char *uid) {
    struct canonical c = {0};
    text(&c, uid);
    return c.hash | 1;
}

static struct canonical_number *number_add(struct canonical *c) {
    if (c->n == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 64;
        c->numbers = realloc(c->numbers, c->cap * sizeof(*c->numbers));
        if (!c->numbers)
            abort();
    }
    return &c->numbers[c->n++];
}

void canonical_order(struct canonical *c, uint64_t class, int64_t value) {
    *number_add(c) = (struct canonical_number){.class = class, .value = value};
}

void canonical_time(struct canonical *c, int64_t at_ns, int64_t past_ns) {
    *number_add(c) = (struct canonical_number){.is_time = true, .value = at_ns, .past_ns = past_ns};
}

/* --- taking out of a copy: afterwards the field is 0 --- */

static void take_order(struct canonical *c, uint64_t class, int64_t *value) {
    canonical_order(c, class, *value);
    *value = 0;
}

static void take_id(struct canonical *c, uint64_t ids, uint64_t *id) {
    canonical_order(c, ids, (int64_t)*id);
    *id = 0;
}

/* 0 is no time, but "not set": that stays, as a 1 for what is set. */
static void take_time(struct canonical *c, int64_t *at_ns, int64_t past_ns) {
    if (!*at_ns)
        return;
    canonical_time(c, *at_ns, past_ns);
    *at_ns = 1;
}

/* One that counts only while it lasts: once passed it is as good as never set. */
static void take_until(struct canonical *c, int64_t *at_ns) {
    canonical_time(c, *at_ns, 0);
    *at_ns = 0;
}

static void take_request(struct canonical *c, uint64_t ids, struct request *q) {
    take_id(c, ids, &q->id);
    take_until(c, &q->retry_ns);
    q->floor = q->head = q->lead = 0; /* no store that is searched through goes back */
}

/* "<round>-<revision of lead>-<n>": the revision is a number. */
static void take_pid(struct canonical *c, char pid[PID_SIZE]) {
    long long round = 0, lead = 0, n = 0;
    if (!pid[0])
        return;
    if (sscanf(pid, "%lld-%lld-%lld", &round, &lead, &n) == 3) {
        canonical_order(c, CANONICAL_REVISION, lead);
        lead = 0;
    }
    memset(pid, 0, PID_SIZE);
    snprintf(pid, PID_SIZE, "%lld-%lld-%lld", round, lead, n);
}

/* --- keys and values --- */

void canonical_key(struct canonical *c, const struct store_key *key) {
    char pid[PID_SIZE];
    uint64_t kind = (uint64_t)key->kind << 8 | key->scope;
    c->hash = canonical_mix(c->hash, kind ^ (uint64_t)key->round << 16);
    text(c, key->inc);
    text(c, key->uid);
    memcpy(pid, key->pid, sizeof(pid));
    take_pid(c, pid);
    text(c, pid);
}

static void head_see(struct canonical *c, const struct head_value *value) {
    struct head_value h = *value;
    take_pid(c, h.pid);
    take_pid(c, h.last_pid);
    canonical_bytes(c, &h, sizeof(h));
}

/* Nobody reads the number of a beat out of the store. */
void canonical_value(struct canonical *c, enum key_kind kind, const union value *value) {
    if (kind == KEY_HEAD)
        head_see(c, &value->head);
    else if (kind != KEY_SESSION)
        canonical_bytes(c, value, value_size(kind));
}

/* --- the parts of an agent --- */

static void session_see(struct canonical *c, uint64_t ids, const struct rendezvous *r) {
    struct session s = r->session;
    const struct timing *t = &r->cur.timing;
    take_order(c, CANONICAL_REVISION, &s.revision);
    take_request(c, ids, &s.request);
    take_request(c, ids, &s.leave);
    if (s.beat_out)
        canonical_order(c, ids + 1, s.beat_seq);
    take_order(c, CANONICAL_REVISION, &s.former.revision);
    take_order(c, CANONICAL_REVISION, &s.former.head_revision);
    take_until(c, &s.former.not_before_ns);
    s.beat_seq = 0;
    s.good_ns = 0; /* as the contact: nobody gives up there */
    take_until(c, &s.beat_next_ns);
    /* Boottime; the two clocks run alike where states are compared. */
    int64_t boot_ns = r->now.boottime_ns - r->now.monotonic_ns;
    s.beat_sent_boottime_ns = s.beat_out ? s.beat_sent_boottime_ns - boot_ns : 0;
    take_time(c, &s.beat_sent_boottime_ns, t->fence_ns);
    bool joins = s.phase == SESSION_JOIN || s.phase == SESSION_CHECK;
    s.join_sent_boottime_ns = joins ? s.join_sent_boottime_ns - boot_ns : 0;
    take_time(c, &s.join_sent_boottime_ns, t->fence_ns);
    s.deadline_ns = s.deadline_ns ? s.deadline_ns - boot_ns : 0;
    take_time(c, &s.deadline_ns, 0);
    take_time(c, &s.leave_since_ns, rendezvous_timing(r).suspect_ns);
    canonical_bytes(c, &s, sizeof(s));
}

static void group_see(struct canonical *c, uint64_t ids, const struct rendezvous *r) {
    struct group g = r->group;
    take_request(c, ids, &g.end);
    take_request(c, ids, &g.done);
    take_request(c, ids, &g.ack);
    if (!g.stopping)
        g.kill_by_ns = g.reap_by_ns = 0;
    take_until(c, &g.kill_by_ns);
    take_until(c, &g.reap_by_ns);
    canonical_bytes(c, &g, sizeof(g));
}

static void holder_see(struct canonical *c, uint64_t ids, const struct rendezvous *r) {
    struct holder h = r->holder;
    take_order(c, canonical_beats_of(h.uid), &h.beat_revision);
    take_request(c, ids, &h.read);
    take_request(c, ids, &h.take);
    take_time(c, &h.heard_ns, r->cur.timing.suspect_ns);
    take_time(c, &h.wish_since_ns, r->cur.timing.hb_ns);
    canonical_bytes(c, &h, sizeof(h));
}

static void standby_see(struct canonical *c, uint64_t ids, const struct rendezvous *r) {
    struct standby w = r->standby;
    take_request(c, ids, &w.read);
    take_pid(c, w.pid);
    canonical_bytes(c, &w, sizeof(w));
}

static void places_see(struct canonical *c, const struct rendezvous *r) {
    for (int i = 0; i < 2; i++) {
        struct plan_place p = r->places[i];
        char asked[PID_SIZE];
        take_pid(c, p.pid);
        canonical_bytes(c, &p, sizeof(p));
        memcpy(asked, r->asked_pids[i], sizeof(asked));
        take_pid(c, asked);
        canonical_bytes(c, asked, sizeof(asked));
    }
}

static void member_see(struct canonical *c, uint64_t ids, const struct rendezvous *r,
                       const struct member *from) {
    struct member m = *from;
    take_order(c, CANONICAL_REVISION, &m.created);
    take_order(c, canonical_beats_of(m.uid), &m.beat_revision);
    take_time(c, &m.heard_ns, r->cur.timing.suspect_ns);
    take_time(c, &m.joined_ns, r->config.admit_ns);
    take_order(c, CANONICAL_REVISION, &m.gone_revision);
    if (!m.acked)
        m.ack_revision = 0;
    if (!m.done)
        m.done_revision = 0;
    take_order(c, CANONICAL_REVISION, &m.ack_revision);
    take_order(c, CANONICAL_REVISION, &m.done_revision);
    take_request(c, ids, &m.revoke);
    int64_t evict_ns = detector_evict_ns(r, from);
    take_time(c, &m.owes_since_ns, evict_ns);
    /* When its beats began only counts against when it was found to owe an ack. */
    m.beats_since_ns = m.owes_since_ns && m.beats_since_ns > from->owes_since_ns;
    canonical_bytes(c, &m, sizeof(m));
}

static void plan_see(struct canonical *c, const struct round_plan *p) {
    char pid[PID_SIZE];
    memcpy(pid, p->pid, sizeof(pid));
    take_pid(c, pid);
    text(c, pid);
    for (size_t i = 0; i < p->n; i++) {
        text(c, p->entries[i].member->uid);
        canonical_bytes(c, &p->entries[i].value, sizeof(p->entries[i].value));
    }
}

static void view_see(struct canonical *c, uint64_t ids, const struct rendezvous *r) {
    const struct view *v = &r->coordinator.view;
    canonical_order(c, CANONICAL_REVISION, v->revision);
    canonical_order(c, CANONICAL_REVISION, v->head_revision);
    canonical_order(c, CANONICAL_REVISION, v->lead_revision);
    uint64_t bits =
        (uint64_t)v->n << 32 | (uint64_t)v->n_plans << 8 | (uint64_t)v->dirty << 1 | v->changed;
    c->hash = canonical_mix(c->hash, bits);
    head_see(c, &v->head);
    for (size_t i = 0; i < v->n; i++)
        member_see(c, ids, r, v->members[i]);
    for (size_t i = 0; i < v->n_plans; i++)
        plan_see(c, &v->plans[i]);
}

static void coordinator_see(struct canonical *c, uint64_t ids, const struct rendezvous *r) {
    struct coordinator k = r->coordinator;
    take_request(c, ids, &k.read);
    take_request(c, ids, &k.decide);
    take_request(c, ids, &k.clean);
    take_request(c, ids, &k.lease);
    k.decide_after = k.decide_after > k.view.revision ? k.decide_after : 0;
    take_order(c, CANONICAL_REVISION, &k.decide_after);
    take_order(c, CANONICAL_REVISION, &k.pid_head);
    take_pid(c, k.pid);
    take_time(c, &k.enough_since_ns, r->config.last_call_ns);
    take_time(c, &k.below_since_ns, r->config.join_timeout_ns);
    take_until(c, &k.wake_ns);
    take_time(c, &k.since_ns, r->cur.timing.suspect_ns);
    view_see(c, ids, r);
    memset(&k.view, 0, sizeof(k.view));
    canonical_bytes(c, &k, sizeof(k));
}

void rendezvous_canonical(const struct rendezvous *r, uint64_t ids, struct canonical *c) {
    struct rendezvous t = *r;
    session_see(c, ids, r);
    group_see(c, ids, r);
    holder_see(c, ids, r);
    standby_see(c, ids, r);
    places_see(c, r);
    coordinator_see(c, ids, r);
    head_see(c, &r->head);
    take_order(c, CANONICAL_REVISION, &t.head_revision);
    take_order(c, CANONICAL_REVISION, &t.lead_revision);
    take_order(c, CANONICAL_REVISION, &t.lead_seen);
    take_request(c, ids, &t.reread);
    take_request(c, ids, &t.read_places);
    take_id(c, ids, &t.lifeline.id);
    take_until(c, &t.lifeline.retry_ns);
    t.known_revision = 0;
    t.known_since = 0;
    t.places_head = r->places_head && r->places_head == r->head_revision;
    for (int i = 0; i < WATCH_SLOTS; i++)
        take_id(c, ids, &t.generations[i]);
    canonical_time(c, t.due_ns, rendezvous_timing(r).hb_ns + 1);
    bool joining = !t.contact.heard_ns || (t.contact.denied && !t.contact.wrote) ||
                   (r->session.phase < SESSION_ACTIVE && !r->session.good_ns);
    canonical_time(c, joining ? t.start_ns : 0, r->config.join_timeout_ns);
    c->hash = canonical_mix(c->hash, t.contact.wrote);
    memset(&t.config, 0, sizeof(t.config));
    memset(&t.strings, 0, sizeof(t.strings));
    memset(&t.arena, 0, sizeof(t.arena));
    memset(&t.rand, 0, sizeof(t.rand));
    memset(&t.contact, 0, sizeof(t.contact));
    memset(&t.now, 0, sizeof(t.now));
    memset(&t.last, 0, sizeof(t.last));
    memset(&t.session, 0, sizeof(t.session));
    memset(&t.group, 0, sizeof(t.group));
    memset(&t.holder, 0, sizeof(t.holder));
    memset(&t.standby, 0, sizeof(t.standby));
    memset(t.places, 0, sizeof(t.places));
    memset(t.asked_pids, 0, sizeof(t.asked_pids));
    memset(&t.coordinator, 0, sizeof(t.coordinator));
    memset(&t.head, 0, sizeof(t.head));
    t.actions = NULL;
    t.n_actions = t.cap_actions = 0;
    t.next_id = 0;
    t.wake_ns = t.due_ns = t.start_ns = 0;
    canonical_bytes(c, &t, sizeof(t));
}
