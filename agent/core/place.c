#include "agent/core/state.h"

#include <string.h>

/* Own place in the plans that head names. A plan is immutable and written before head names it, so
 * that one read of each is enough. */

const struct place *place_in(const struct rendezvous *r, const char *pid) {
    for (int i = 0; i < 2; i++)
        if (pid[0] && r->places[i].known && strcmp(r->places[i].pid, pid) == 0)
            return &r->places[i];
    return NULL;
}

static bool is_named(const struct rendezvous *r, const char *pid) {
    return strcmp(pid, r->head.pid) == 0 || strcmp(pid, r->head.last_pid) == 0;
}

static void place_keep(struct rendezvous *r, const char *pid, const struct plan_value *value) {
    struct place *p = is_named(r, r->places[0].pid) ? &r->places[1] : &r->places[0];
    memset(p, 0, sizeof(*p));
    memcpy(p->pid, pid, sizeof(p->pid));
    p->known = true;
    p->present = value != NULL;
    if (value)
        p->value = *value;
}

void place_advance(struct rendezvous *r) {
    struct key keys[2];
    size_t n = 0;
    if (r->session.phase != SESSION_ACTIVE || !r->has_head || !request_may(r, &r->read_places))
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
}

/* What was asked for was named by head, so it was written: absent now is absent for ever. */
void place_snapshot(struct rendezvous *r, const struct event *ev) {
    if (!request_reply(r, &r->read_places, ev->snapshot.id, ev->snapshot.reached) ||
        !ev->snapshot.reached)
        return;
    for (int i = 0; i < 2; i++) {
        const char *pid = r->asked_pids[i];
        const struct plan_value *found = NULL;
        if (!pid[0] || !is_named(r, pid) || place_in(r, pid))
            continue;
        for (size_t k = 0; k < ev->snapshot.n; k++)
            if (strcmp(ev->snapshot.entries[k].key.pid, pid) == 0)
                found = &ev->snapshot.entries[k].value->plan;
        place_keep(r, pid, found);
    }
}
