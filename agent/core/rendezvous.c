#include "agent/core/state.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int config_check(const struct rendezvous_config *c, struct err *err) {
    int rc = key_run_id_check(c->run_id, err);
    if (rc)
        return rc;
    if (c->min < 1 || c->max < c->min)
        return err_say(err, -EINVAL, "nodes %d:%d: min must be at least 1 and at most max", c->min,
                       c->max);
    if (c->slots < 1)
        return err_say(err, -EINVAL, "%d workers per node: there must be at least 1", c->slots);
    if (c->max_free_rounds < 0)
        return err_say(err, -EINVAL, "max_free_rounds_per_hour %d: it cannot be negative",
                       c->max_free_rounds);
    if (c->max_restarts < 0)
        return err_say(err, -EINVAL, "max_restarts %d: it cannot be negative", c->max_restarts);
    if (strlen(c->attempt) >= ATTEMPT_SIZE || strlen(c->role) >= ROLE_SIZE ||
        strlen(c->node) >= NAME_SIZE || strlen(c->addr) >= NAME_SIZE)
        return err_say(err, -EINVAL,
                       "attempt, role, node name or address is too long (%d, %d, %d, %d bytes)",
                       ATTEMPT_SIZE - 1, ROLE_SIZE - 1, NAME_SIZE - 1, NAME_SIZE - 1);
    return timing_check(&c->timing, err);
}

void rendezvous_own(struct rendezvous *r, const struct rendezvous_config *config) {
    r->config = *config;
    r->config.run_id = arena_strdup(&r->strings, config->run_id);
    r->config.node = arena_strdup(&r->strings, config->node);
    r->config.addr = arena_strdup(&r->strings, config->addr);
    r->config.role = arena_strdup(&r->strings, config->role);
    r->config.attempt = arena_strdup(&r->strings, config->attempt);
}

struct rendezvous *rendezvous_new(const struct rendezvous_config *config, uint64_t seed,
                                  struct err *err) {
    if (config_check(config, err))
        return NULL;
    struct rendezvous *r = mem_new(struct rendezvous);
    rendezvous_own(r, config);
    rand_init(&r->rand, seed);
    r->due_ns = INT64_MAX;
    group_init(r);
    session_init(r);
    return r;
}

struct rendezvous *rendezvous_free(struct rendezvous *r) {
    if (!r)
        return NULL;
    view_fini(&r->coordinator.view);
    arena_fini(&r->strings);
    rendezvous_rest(r);
    free(r);
    return NULL;
}

void rendezvous_rest(struct rendezvous *r) {
    arena_fini(&r->arena);
    free(r->actions);
    r->actions = NULL;
    r->n_actions = r->cap_actions = 0;
}

struct timing rendezvous_timing(const struct rendezvous *r) {
    return r->has_cur ? r->cur.timing : r->config.timing;
}

const char *rendezvous_uid(const struct rendezvous *r) {
    return r->session.revision ? r->session.uid : "";
}

/* --- events --- */

static void revision_note(struct rendezvous *r, uint64_t id, int64_t revision) {
    if (r->has_cur && id >= r->known_since && revision > r->known_revision)
        r->known_revision = revision;
}

/* Since it knows this incarnation. */
static struct request asked(const struct rendezvous *r, uint64_t id) {
    const struct request *const all[] = {&r->session.request, &r->reread,
                                         &r->read_places,     &r->holder.read,
                                         &r->standby.read,    &r->coordinator.read};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (all[i]->id == id && id >= r->known_since)
            return *all[i];
    return (struct request){0};
}

/* What was known of the entry's key when it was asked for. */
static int64_t known_of(const struct request *q, const struct entry *e) {
    return e->key.kind == KEY_HEAD ? q->head : e->key.kind == KEY_LEAD ? q->lead : 0;
}

/* Reads are linearizable: what was known when this one was asked for is in it. A store that came
 * back empty knows nothing of this incarnation; one that does, and less than was known of it, was
 * set back, or lies. With many beats its revision is soon beyond what was known; head and lead are
 * not. */
static void revision_check(struct rendezvous *r, const struct event *ev) {
    int64_t revision = ev->snapshot.revision;
    const struct request q = asked(r, ev->snapshot.id);
    const struct entry *older = NULL;
    bool ours = false;
    for (size_t i = 0; r->has_cur && i < ev->snapshot.n; i++) {
        const struct entry *e = &ev->snapshot.entries[i];
        const char *inc = e->key.kind == KEY_CUR ? e->value->cur.inc : e->key.inc;
        if (strcmp(inc, r->cur.inc) != 0)
            continue;
        ours = true;
        if (e->mod_revision < known_of(&q, e))
            older = e;
    }
    if (!ours)
        return;
    revision_note(r, ev->snapshot.id, revision);
    if (r->giving_up)
        return;
    if (revision < q.floor)
        contact_stranger(r, revision, q.floor);
    else if (older)
        contact_stranger(r, older->mod_revision, known_of(&q, older));
}

static void on_changes(struct rendezvous *r, const struct event *ev) {
    enum watch_slot slot = ev->changes.slot;
    if (!r->generations[slot] || r->generations[slot] != ev->changes.generation)
        return;
    contact_made(r, false);
    if (slot == WATCH_ALL)
        coordinator_changes(r, ev);
    else if (slot == WATCH_HOLDER)
        lead_changes(r, ev);
    for (size_t i = 0; i < ev->changes.n; i++) {
        revision_note(r, ev->changes.generation, ev->changes.entries[i].mod_revision);
        if (slot == WATCH_HEAD)
            watch_head_entry(r, &ev->changes.entries[i]);
        if (slot == WATCH_LEAD)
            watch_lead_entry(r, &ev->changes.entries[i]);
    }
}

static void on_watch_lost(struct rendezvous *r, const struct event *ev) {
    enum watch_slot slot = ev->watch_lost.slot;
    if (r->generations[slot] && r->generations[slot] == ev->watch_lost.generation)
        r->watch_lost[slot] = true;
}

static void on_snapshot(struct rendezvous *r, const struct event *ev) {
    if (ev->snapshot.reached)
        revision_check(r, ev);
    if (ev->snapshot.reached)
        contact_made(r, false);
    else
        contact_missed(r, false);
    session_snapshot(r, ev);
    watch_snapshot(r, ev);
    place_snapshot(r, ev);
    lead_snapshot(r, ev);
    standby_snapshot(r, ev);
    coordinator_snapshot(r, ev);
}

/* A store that is full may keep leases alive, and grant them. */
static bool is_of_lease(const struct rendezvous *r, uint64_t id) {
    bool grant = r->session.phase == SESSION_GRANT && r->session.request.id == id;
    return grant || r->coordinator.lease.id == id;
}

static void on_done(struct rendezvous *r, const struct event *ev) {
    if (ev->done.reached)
        contact_made(r, !is_of_lease(r, ev->done.id));
    else
        contact_missed(r, true);
    if (ev->done.reached && ev->done.applied)
        revision_note(r, ev->done.id, ev->done.revision);
    session_done(r, ev);
    group_done(r, ev);
    lead_done(r, ev);
    coordinator_done(r, ev);
}

/* The first one is passed on and waited for; the second one means now. */
static void on_signal(struct rendezvous *r, const struct event *ev) {
    if (r->signo)
        group_kill(r);
    else
        r->signo = ev->signal.signo;
}

static void absorb(struct rendezvous *r, const struct event *ev) {
    switch (ev->kind) {
    case EVENT_START:
    case EVENT_TIMER:
        break;
    case EVENT_SNAPSHOT:
        on_snapshot(r, ev);
        break;
    case EVENT_CHANGES:
        on_changes(r, ev);
        break;
    case EVENT_WATCH_LOST:
        on_watch_lost(r, ev);
        break;
    case EVENT_DONE:
        on_done(r, ev);
        break;
    case EVENT_BEAT:
        session_beat(r, ev);
        break;
    case EVENT_WORKERS_STARTED:
    case EVENT_WORKER_EXITED:
    case EVENT_GROUP_REAPED:
    case EVENT_GUARD_DEAD:
    case EVENT_PORT:
        group_event(r, ev);
        break;
    case EVENT_SIGNAL:
        on_signal(r, ev);
        break;
    case EVENT_TREE:
    case EVENT_LOOKED_UP:
        break; /* agent/legacy's */
    case EVENT_LIFELINE:
        lifeline_event(r, ev);
        break;
    }
}

/* --- a step --- */

/* This process did not run for a while: the timer is late, or the host slept. What the others did
 * meanwhile is not known yet. */
static void stall_check(struct rendezvous *r) {
    int64_t hb_ns = rendezvous_timing(r).hb_ns;
    int64_t late_ns = r->now.monotonic_ns > r->due_ns ? r->now.monotonic_ns - r->due_ns : 0;
    int64_t slept_ns =
        (r->now.boottime_ns - r->last.boottime_ns) - (r->now.monotonic_ns - r->last.monotonic_ns);
    if (late_ns > hb_ns || slept_ns > hb_ns) {
        detector_stalled(r, late_ns);
        group_stalled(r, late_ns);
        contact_stalled(r, late_ns);
    }
}

static void advance(struct rendezvous *r) {
    session_advance(r);
    if (r->over)
        return;
    watch_advance(r);
    place_advance(r);
    lifeline_advance(r);
    group_advance(r);
    if (r->over)
        return;
    lead_advance(r);
    standby_advance(r);
    coordinator_advance(r);
}

static void timer_set(struct rendezvous *r, bool fired) {
    if (r->wake_ns == INT64_MAX)
        r->due_ns = INT64_MAX; /* should the old timer fire, it does no harm */
    if (r->wake_ns == INT64_MAX || (!fired && r->wake_ns == r->due_ns))
        return;
    r->due_ns = r->wake_ns > r->now.monotonic_ns ? r->wake_ns : r->now.monotonic_ns;
    action_add(r, ACTION_TIMER)->timer.at_ns = r->due_ns;
}

const struct action *rendezvous_step(struct rendezvous *r, const struct event *event,
                                     struct now now, size_t *ret_n) {
    r->n_actions = 0;
    arena_clear(&r->arena);
    *ret_n = 0;
    if (r->over)
        return r->actions;
    r->now = now;
    if (event->kind == EVENT_START) {
        r->start_ns = now.monotonic_ns;
        r->last = now;
    }
    stall_check(r);
    absorb(r, event);
    size_t before;
    int turns = 0;
    do {
        before = r->n_actions;
        r->wake_ns = INT64_MAX;
        advance(r);
        assert(++turns < 32);
    } while (r->n_actions != before && !r->over);
    if (!r->over)
        timer_set(r, event->kind == EVENT_TIMER);
    r->last = now;
    *ret_n = r->n_actions;
    return r->actions;
}
