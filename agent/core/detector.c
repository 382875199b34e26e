/* Silence: the time since this coordinator received what carries a member's newest beat. Only that
 * revokes (T4), and only if the store has no newer beat either. A broken connection, a peer's
 * report, anything loud revokes nobody. */
#include "agent/core/state.h"

#include <string.h>

enum { REVOCATIONS_MAX = 32 };

/* How much longer than its own longest stop an agent may owe an ack. */
#define EVICT_MARGIN_NS 5000000000LL

/* After a stall of its own an agent knows nothing about the others' silence: it begins anew. Once
 * only, until they are heard, or nobody would be given up where this agent stands still again and
 * again; from then on only the time in which it did not run is left out. */
static void silence_excuse(const struct rendezvous *r, int64_t late_ns, int64_t *heard_ns,
                           bool *excused) {
    *heard_ns = *excused ? *heard_ns + late_ns : r->now.monotonic_ns;
    *excused = true;
}

void detector_stalled(struct rendezvous *r, int64_t late_ns) {
    struct view *v = &r->coordinator.view;
    for (size_t i = 0; i < v->n; i++) {
        struct member *m = v->members[i];
        silence_excuse(r, late_ns, &m->heard_ns, &m->excused);
        if (m->owes_since_ns)
            m->owes_since_ns += late_ns;
    }
    silence_excuse(r, late_ns, &r->holder.heard_ns, &r->holder.excused);
}

/* T4. A session that is not there compares as revision 0, and deleting it is nothing: so that there
 * is no certificate yet is compared as well. */
static void revoke_member(struct rendezvous *r, struct member *m) {
    struct draft *d = draft_new(r);
    draft_compare(d, key_job(r, KEY_LEAD), COMPARE_MOD, r->coordinator.view.lead_revision);
    draft_compare(d, key_of(r, KEY_SESSION, m->uid), COMPARE_MOD, m->beat_revision);
    draft_compare(d, key_of(r, KEY_GONE, m->uid), COMPARE_VERSION, 0);
    draft_delete(d, key_of(r, KEY_SESSION, m->uid));
    draft_put(r, d, key_of(r, KEY_GONE, m->uid))->gone.why = GONE_SILENT;
    request_txn(r, &m->revoke, d);
}

/* A session that ended without a certificate owes one only to a plan it is in. */
static bool is_watched(const struct rendezvous *r, const struct member *m) {
    if (strcmp(m->uid, r->session.uid) == 0 || m->gone)
        return false;
    return m->session || m->rank_now >= 0 || m->rank_last >= 0;
}

/* --- who beats and does not ack --- */

static bool owes_ack(const struct view *v, const struct member *m) {
    bool form = v->head.phase == HEAD_FORM, ended = form || v->head.phase == HEAD_END;
    if (!ended || !m->session || m->acked)
        return false;
    return (form && m->rank_now >= 0) || (m->rank_last >= 0 && !m->done && !m->gone);
}

/* The session ends, without a certificate: its workers may live. Its next beat is refused, by which
 * the agent ends them; the certificate comes of its silence, as of any session that is not there.
 */
static void evict_member(struct rendezvous *r, struct member *m) {
    struct draft *d = draft_new(r);
    struct store_key ack = key_of(r, KEY_ACK, m->uid);
    ack.round = r->coordinator.view.head.last_round;
    draft_compare(d, key_job(r, KEY_LEAD), COMPARE_MOD, r->coordinator.view.lead_revision);
    draft_compare(d, key_of(r, KEY_SESSION, m->uid), COMPARE_CREATE, m->created);
    draft_compare(d, ack, COMPARE_VERSION, 0);
    draft_delete(d, key_of(r, KEY_SESSION, m->uid));
    request_txn(r, &m->revoke, d);
    action_log(r, "node %s beats but has not said for %lld s that its workers are dead: evicted",
               m->known ? m->value.node : m->uid,
               (long long)((r->now.monotonic_ns - m->owes_since_ns) / 1000000000));
}

int64_t detector_evict_ns(const struct rendezvous *r, const struct member *m) {
    bool told = m->known && m->value.stop_ns;
    return (told ? m->value.stop_ns : group_stop_ns(r)) + EVICT_MARGIN_NS;
}

/* Silence is not counted here: a store that was away gives everybody their time again. */
static void evict_advance(struct rendezvous *r, struct member *m) {
    const struct view *v = &r->coordinator.view;
    if (!owes_ack(v, m)) {
        m->owes_since_ns = 0;
        return;
    }
    if (!m->owes_since_ns)
        m->owes_since_ns = r->now.monotonic_ns;
    if (m->owes_since_ns < m->beats_since_ns)
        m->owes_since_ns = m->beats_since_ns;
    int64_t at_ns = m->owes_since_ns + detector_evict_ns(r, m);
    if (r->now.monotonic_ns < at_ns)
        wake_at(r, at_ns);
    else if (r->now.monotonic_ns - m->heard_ns > v->gap_ns)
        m->owes_since_ns = 0;
    else if (request_may(r, &m->revoke))
        evict_member(r, m);
}

/* --- all of them --- */

/* Each silent member is revoked for itself, so that one that beats after all spoils only its own;
 * when half the cluster goes silent, not all of them are asked about at once. */
void detector_advance(struct rendezvous *r) {
    struct view *v = &r->coordinator.view;
    int under_way = 0;
    if (v->head.phase == HEAD_CLOSED)
        return;
    for (size_t i = 0; i < v->n; i++)
        under_way += v->members[i]->revoke.id != 0;
    for (size_t i = 0; i < v->n; i++) {
        struct member *m = v->members[i];
        int64_t at_ns = m->heard_ns + r->cur.timing.suspect_ns;
        evict_advance(r, m);
        if (!is_watched(r, m) || under_way >= REVOCATIONS_MAX)
            continue;
        if (r->now.monotonic_ns < at_ns) {
            wake_at(r, at_ns);
        } else if (request_may(r, &m->revoke)) {
            revoke_member(r, m);
            under_way++;
        }
    }
}

bool detector_done(struct rendezvous *r, const struct event *ev) {
    struct view *v = &r->coordinator.view;
    for (size_t i = 0; i < v->n; i++) {
        struct member *m = v->members[i];
        if (!request_reply(r, &m->revoke, ev->done.id, ev->done.reached))
            continue;
        m->revoke.retry_ns = r->now.monotonic_ns + r->cur.timing.hb_ns;
        return true;
    }
    return false;
}
