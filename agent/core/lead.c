/* Who coordinates, and the wish to: when there is no holder, when it has ended, or when it has been
 * silent for suspect. The wish is staggered by rank, so that one comes first. */
#include "agent/core/state.h"

#include <string.h>

#define STAGGER_NS 20000000LL

bool lead_is_own(const struct rendezvous *r) {
    return r->lead_revision && uid_is(r->lead, r->session.uid);
}

static void holder_reset(struct rendezvous *r, const char *uid) {
    struct holder *h = &r->holder;
    int64_t retry_ns = h->take.retry_ns;
    memset(h, 0, sizeof(*h));
    h->take.retry_ns = retry_ns;
    memcpy(h->uid, uid, strlen(uid));
    h->rank = 1 + (int)rand_below(&r->rand, 16);
    action_unwatch(r, WATCH_HOLDER);
}

static void holder_follow(struct rendezvous *r) {
    struct holder *h = &r->holder;
    if (!uid_is(h->uid, r->lead))
        holder_reset(r, r->lead);
    if (!r->lead_revision || lead_is_own(r))
        return;
    if ((!h->known || r->watch_lost[WATCH_HOLDER]) && request_may(r, &h->read)) {
        struct store_key key = key_of(r, KEY_SESSION, h->uid);
        request_snapshot(r, &h->read, &key, 1);
    }
}

void lead_snapshot(struct rendezvous *r, const struct event *ev) {
    struct holder *h = &r->holder;
    const struct entry *found = NULL;
    if (!request_read(r, &h->read, ev))
        return;
    if (r->watch_lost[WATCH_HOLDER])
        request_rest(r, &h->read);
    for (size_t i = 0; i < ev->snapshot.n; i++)
        if (strcmp(ev->snapshot.entries[i].key.uid, h->uid) == 0)
            found = &ev->snapshot.entries[i];
    if (!h->known || (found && found->mod_revision != h->beat_revision)) {
        h->heard_ns = r->now.monotonic_ns;
        h->excused = false;
    }
    h->known = true;
    h->present = found != NULL;
    h->beat_revision = found ? found->mod_revision : 0;
    action_watch(r, WATCH_HOLDER, key_of(r, KEY_SESSION, h->uid), ev->snapshot.revision + 1);
}

void lead_changes(struct rendezvous *r, const struct event *ev) {
    struct holder *h = &r->holder;
    for (size_t i = 0; i < ev->changes.n; i++) {
        const struct entry *e = &ev->changes.entries[i];
        if (e->key.kind != KEY_SESSION || strcmp(e->key.uid, h->uid) != 0 ||
            e->mod_revision <= h->beat_revision)
            continue;
        h->present = !e->deleted;
        h->beat_revision = e->deleted ? 0 : e->mod_revision;
        h->heard_ns = r->now.monotonic_ns;
        h->excused = false;
    }
}

/* T5, together with T4 when the holder has a session that is silent. */
static void take_send(struct rendezvous *r, bool silent) {
    struct holder *h = &r->holder;
    struct draft *d = draft_new(r);
    draft_compare_session(r, d);
    draft_compare(d, key_job(r, KEY_LEAD), COMPARE_MOD, r->lead_revision);
    union value *v = draft_put(r, d, key_job(r, KEY_LEAD));
    memcpy(v->lead.uid, r->session.uid, sizeof(v->lead.uid));
    if (silent) {
        draft_compare(d, key_of(r, KEY_SESSION, h->uid), COMPARE_MOD, h->beat_revision);
        draft_delete(d, key_of(r, KEY_SESSION, h->uid));
        draft_put(r, d, key_of(r, KEY_GONE, h->uid))->gone.why = GONE_SILENT;
    }
    request_txn(r, &h->take, d);
}

/* Whoever made the incarnation is there first; others without a place wait a random turn. */
static int wish_rank(const struct rendezvous *r) {
    const struct plan_place *p = place_in(r, r->head.pid);
    if (!r->lead_seen && r->session.created)
        return 0;
    return p && p->present ? p->value.group_rank : r->head.n + r->holder.rank;
}

/* When the wish begins; false: there is none. */
static bool wish(struct rendezvous *r, bool *ret_silent, int64_t *ret_since_ns) {
    struct holder *h = &r->holder;
    int64_t silent_ns = h->heard_ns + r->cur.timing.suspect_ns;
    bool absent = !r->lead_revision || (h->known && !h->present);
    *ret_silent = !absent && h->known && r->now.monotonic_ns >= silent_ns;
    if (!absent && h->known && !*ret_silent)
        wake_at(r, silent_ns);
    if (absent && !h->wish_since_ns)
        h->wish_since_ns = r->now.monotonic_ns;
    if (!absent)
        h->wish_since_ns = 0;
    *ret_since_ns = absent ? h->wish_since_ns : silent_ns;
    return absent || *ret_silent;
}

void lead_advance(struct rendezvous *r) {
    struct holder *h = &r->holder;
    bool silent;
    int64_t since_ns;
    if (r->session.phase != SESSION_ACTIVE || leave_due(r))
        return;
    holder_follow(r);
    if (lead_is_own(r) || !wish(r, &silent, &since_ns))
        return;
    int64_t at_ns = since_ns + STAGGER_NS * wish_rank(r);
    if (r->now.monotonic_ns < at_ns) {
        wake_at(r, at_ns);
    } else if (request_may(r, &h->take)) {
        take_send(r, silent);
    }
}

/* The change of lead tells who has it; should it not come, the wish is said again. */
void lead_done(struct rendezvous *r, const struct event *ev) {
    if (request_reply(r, &r->holder.take, ev->done.id, ev->done.reached))
        r->holder.take.retry_ns = r->now.monotonic_ns + r->cur.timing.hb_ns;
}
