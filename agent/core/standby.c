/* Standbys: the two next in line hold the coordinator's view before they need it. Who takes over
 * has then heard every beat itself, so that a node that was lost together with the coordinator is
 * given up after suspect, not after twice that: silence is counted from what was received, and any
 * other successor has received nothing yet.
 *
 * Who they are follows from the store: the lowest group ranks of the plan that head names, but for
 * the holder of the lead. Each costs the store one more stream of all beats, so larger jobs than
 * STANDBY_NODES_MAX do without. */
#include "agent/core/state.h"

#include <string.h>

enum { STANDBY_NODES_MAX = 100, SUCCESSORS = 2 };

/* The holder's rank matters to one agent only: the one behind the first two. */
static bool holder_known(struct rendezvous *r) {
    struct standby *w = &r->standby;
    if (w->known && strcmp(w->pid, r->head.pid) == 0 && strcmp(w->uid, r->lead) == 0)
        return true;
    if (!r->lead_revision || !request_may(r, &w->read))
        return false;
    struct store_key key = key_of(r, KEY_PLAN, r->lead);
    memcpy(key.pid, r->head.pid, sizeof(key.pid));
    w->known = false;
    memcpy(w->pid, r->head.pid, sizeof(w->pid));
    memcpy(w->uid, r->lead, sizeof(w->uid));
    request_snapshot(r, &w->read, &key, 1);
    return false;
}

void standby_snapshot(struct rendezvous *r, const struct event *ev) {
    struct standby *w = &r->standby;
    if (!request_read(r, &w->read, ev))
        return;
    w->known = true;
    w->rank = ev->snapshot.n ? ev->snapshot.entries[0].value->plan.group_rank : -1;
}

/* Between two plans what was true of the last one goes on, so that no view is dropped for a
 * moment. */
void standby_advance(struct rendezvous *r) {
    struct standby *w = &r->standby;
    bool member = r->session.phase == SESSION_ACTIVE && !leave_due(r);
    const struct plan_place *p = place_in(r, r->head.pid);
    if (!member || r->head.n < 2 || r->head.n > STANDBY_NODES_MAX) {
        w->on = false;
        return;
    }
    if (!p || lead_is_own(r))
        return;
    int rank = p->present ? p->value.group_rank : r->head.n;
    if (rank != SUCCESSORS)
        w->on = rank < SUCCESSORS;
    else if (holder_known(r))
        w->on = w->rank >= 0 && w->rank < SUCCESSORS;
}
