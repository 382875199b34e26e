/* The end of an agent: on a signal (T3), on the outcome, or because the store cannot be reached.
 * First the workers end, then the session is given back, then comes EXIT. */
#include "agent/core/state.h"

#include <string.h>

#define SECOND 1000000000LL

bool leave_due(const struct rendezvous *r) {
    return r->signo || r->giving_up || r->head.phase == HEAD_CLOSED;
}

/* The sentence with which every agent of the job ends: the same on all of them. */
static const char *outcome_text(struct rendezvous *r) {
    struct arena *a = &r->arena;
    const struct failure *f = &r->head.failure;
    const char *spent = "";
    if (r->head.outcome != OUTCOME_FAILED)
        return "";
    if (f->uid[0] && r->cur.max_restarts > 0)
        spent = arena_printf(a, "; max_restarts %d is used up", r->cur.max_restarts);
    return arena_printf(a, "run \"%s\" failed: %s%s", r->config.run_id, failure_text(a, f), spent);
}

/* An outcome that somebody else's workers brought about, maybe those of another job of the same
 * name: who starts this one must not take it for its own. */
static const char *earlier_text(struct rendezvous *r) {
    struct arena *a = &r->arena;
    bool failed = r->head.outcome == OUTCOME_FAILED;
    return arena_printf(a,
                        "run \"%s\" has already ended here: it %s%s; no worker was started; give "
                        "this job another --rdzv-id, or wait until the id is free, %lld s after "
                        "the last agent of that run has ended",
                        r->config.run_id, failed ? "failed: " : "succeeded",
                        failed ? failure_text(a, &r->head.failure) : "",
                        (long long)session_lease_ttl_s(&r->cur.timing));
}

static void exit_closed(struct rendezvous *r) {
    const struct head_value *h = &r->head;
    bool failed = h->outcome == OUTCOME_FAILED, earlier = !r->session.ever;
    const struct failure *f = failed && h->failure.uid[0] ? &h->failure : NULL;
    struct action *a =
        action_exit(r, failed ? 1 : 0, earlier ? earlier_text(r) : outcome_text(r), f);
    a->exit.round = h->last_round;
    a->exit.earlier = earlier;
    a->exit.outcome = !earlier;
}

static void leave_over(struct rendezvous *r) {
    const char *text = arena_printf(&r->arena, "left run \"%s\" on signal %d before the outcome",
                                    r->config.run_id, r->signo);
    action_exit(r, 128 + r->signo, text, NULL);
}

static void leave_exit(struct rendezvous *r) {
    if (r->signo) {
        leave_over(r);
    } else if (r->head.phase == HEAD_CLOSED) {
        exit_closed(r);
    } else {
        action_exit(r, 69, contact_text(r), NULL);
    }
}

/* T3 when leaving; on the outcome only the session goes. With the lead, if it is held. */
static void leave_send(struct rendezvous *r) {
    struct session *s = &r->session;
    struct draft *d = draft_new(r);
    draft_compare_session(r, d);
    draft_delete(d, key_own(r, KEY_SESSION));
    if (r->signo)
        draft_put(r, d, key_own(r, KEY_GONE))->gone.why = GONE_LEFT;
    s->leave_had_lead = r->signo && lead_is_own(r) && !s->leave_without_lead;
    if (s->leave_had_lead) {
        draft_compare(d, key_job(r, KEY_LEAD), COMPARE_MOD, r->lead_revision);
        draft_delete(d, key_job(r, KEY_LEAD));
    }
    request_txn(r, &s->leave, d);
}

/* Refused: somebody took the lead in between, or the session had ended before. */
void leave_done(struct rendezvous *r, const struct event *ev) {
    struct session *s = &r->session;
    if (!request_reply(r, &s->leave, ev->done.id, ev->done.reached))
        return;
    if (ev->done.reached && !ev->done.applied && s->leave_had_lead) {
        s->leave_without_lead = true;
        s->leave.settled = false;
    }
}

/* The host of the store goes last: when every session has ended or is silent for suspect. */
static bool others_remain(struct rendezvous *r) {
    const struct view *v = &r->coordinator.view;
    bool remain = false;
    if (!r->config.hosts_store || r->giving_up)
        return false;
    if (!r->coordinator.loaded)
        return r->has_cur || r->session.phase == SESSION_READ_CUR;
    for (size_t i = 0; i < v->n; i++) {
        const struct member *m = v->members[i];
        int64_t silent_ns = m->heard_ns + r->cur.timing.suspect_ns;
        if (!m->session || strcmp(m->uid, r->session.uid) == 0)
            continue;
        if (r->now.monotonic_ns >= silent_ns)
            continue;
        wake_at(r, silent_ns);
        remain = true;
    }
    return remain;
}

void leave_advance(struct rendezvous *r) {
    struct session *s = &r->session;
    if (r->group.state != GROUP_IDLE)
        return;
    if (!s->leave_since_ns) {
        s->leave_since_ns = r->now.monotonic_ns;
        if (r->signo)
            action_claim(r, CLAIM_LEAVE, r->head.round);
    }
    int64_t last_ns = s->leave_since_ns + rendezvous_timing(r).suspect_ns;
    bool session = s->phase == SESSION_ACTIVE && !s->leave.settled;
    bool remain = others_remain(r);
    /* Who stays must not be taken for a member: it says that it leaves until it is heard. */
    bool waits = session && !r->giving_up && (remain || r->now.monotonic_ns < last_ns);
    if (waits) {
        if (r->now.monotonic_ns < last_ns)
            wake_at(r, last_ns);
        if (request_may(r, &s->leave))
            leave_send(r);
    } else if (!remain) {
        leave_exit(r);
    }
}

/* --- when the store was heard last, what people are told while it is not, and when this agent
 * gives up on it: from then on nobody here knows how the job ends. A store that takes no writes is
 * of no use, whatever it answers: once one was not done, only one that is shows that it is back.
 * ---
 */

void contact_made(struct rendezvous *r, bool wrote) {
    struct contact *c = &r->contact;
    bool leaving = leave_due(r); /* it has nothing more to write; a host only looks */
    c->answers = true;
    if (c->denied && !wrote && !leaving)
        return;
    if (c->told)
        action_store(r, false, c->heard_ns ? "answers again" : "answers now");
    c->heard_ns = r->now.monotonic_ns;
    c->wrote |= wrote;
    c->missed = c->denied = c->told = c->answers = c->excused = false;
}

/* Until a write is done, join_timeout is the limit of what takes none. */
static bool is_joining(const struct contact *c) {
    return !c->heard_ns || (c->denied && !c->wrote);
}

/* As far as is known. */
static bool is_read_only(const struct contact *c) {
    return c->denied && c->heard_ns && (c->answers || !c->wrote);
}

static int64_t contact_limit_ns(const struct rendezvous *r) {
    return is_joining(&r->contact) ? r->config.join_timeout_ns : r->config.give_up_ns;
}

/* It may not have been asked for a while before: while workers end, or another attempt is waited
 * for. From the first request that is not answered it has suspect. */
void contact_missed(struct rendezvous *r, bool writes) {
    struct contact *c = &r->contact;
    int64_t suspect_ns = rendezvous_timing(r).suspect_ns;
    if (writes && !c->denied)
        c->answers = false;
    c->denied |= writes;
    int64_t limit_ns = contact_limit_ns(r);
    if (!c->missed)
        c->patience_ns = r->now.monotonic_ns + (limit_ns < suspect_ns ? limit_ns : suspect_ns);
    c->missed = true;
}

/* The store may have answered all the while: it is asked once more, and after another stall gets
 * the time that this agent has lost by it. */
void contact_stalled(struct rendezvous *r, int64_t late_ns) {
    struct contact *c = &r->contact;
    if (c->excused)
        c->patience_ns += late_ns;
    else
        contact_rest(r, r->now.monotonic_ns);
    c->excused = true;
}

void contact_rest(struct rendezvous *r, int64_t until_ns) {
    int64_t at_ns = until_ns + rendezvous_timing(r).suspect_ns;
    if (r->contact.patience_ns < at_ns)
        r->contact.patience_ns = at_ns;
}

/* While it joins again give_up is the limit, as for a store that does not answer. */
static int64_t join_limit_ns(const struct rendezvous *r) {
    return r->session.good_ns ? r->config.give_up_ns : r->config.join_timeout_ns;
}

const char *contact_text(struct rendezvous *r) {
    const struct contact *c = &r->contact;
    long long s = contact_limit_ns(r) / SECOND;
    if (r->stranger)
        return "outcome unknown: the store is not the one that this run is in";
    if (!c->missed)
        return arena_printf(&r->arena,
                            "%sthe store answers, but for %lld s this agent has not come into the "
                            "run: what it was told does not fit together",
                            r->session.good_ns ? "outcome unknown: " : "",
                            (long long)(join_limit_ns(r) / SECOND));
    const char *what = is_read_only(c) ? "the store has taken no write"
                       : c->heard_ns   ? "the store has not answered"
                                       : "the store could not be reached";
    return arena_printf(&r->arena, "%s%s for %lld s",
                        is_joining(c) ? "" : "outcome unknown: ", what, s);
}

/* A store that was never heard is one that is not up yet: that is said at the first request without
 * an answer. Later a lost reply or two is nothing, but at the fence the workers die of it. */
static void tell(struct rendezvous *r) {
    struct contact *c = &r->contact;
    int64_t silent_ns = r->now.monotonic_ns - c->heard_ns;
    int64_t fence_ns = rendezvous_timing(r).fence_ns;
    bool deaf = is_read_only(c);
    if (c->told || !c->missed || leave_due(r))
        return;
    if (c->heard_ns && silent_ns < fence_ns) {
        wake_at(r, c->heard_ns + fence_ns);
        return;
    }
    c->told = true;
    long long limit_s = contact_limit_ns(r) / SECOND;
    if (is_joining(c))
        action_store(r, true, "%s yet; trying for up to %lld s (--rdzv-conf join_timeout=...)",
                     deaf ? "answers, but takes no write" : "does not answer", limit_s);
    else
        action_store(r, true,
                     "%s for %lld.%lld s; waiting up to %lld s for it (--rdzv-conf give_up=...)",
                     deaf ? "answers, but has taken no write" : "has not answered",
                     (long long)(silent_ns / SECOND), (long long)(silent_ns % SECOND * 10 / SECOND),
                     limit_s);
}

/* It answers, and no beat comes of it: it may take every session away again, or not show what it
 * says it has written. Another attempt's run is waited for elsewhere. To join takes half a dozen
 * questions, one after the other. */
static void join_limit(struct rendezvous *r) {
    const struct session *s = &r->session;
    int64_t since_ns = s->good_ns ? s->good_ns : r->start_ns;
    int64_t at_ns = since_ns + join_limit_ns(r);
    if (s->phase >= SESSION_ACTIVE || s->former.set || leave_due(r))
        return;
    at_ns = at_ns > r->contact.patience_ns ? at_ns : r->contact.patience_ns;
    at_ns += rendezvous_timing(r).suspect_ns;
    if (r->now.monotonic_ns < at_ns)
        wake_at(r, at_ns);
    else
        r->giving_up = true;
}

void contact_stranger(struct rendezvous *r, int64_t revision, int64_t known) {
    action_store(r, false,
                 "says revision %lld after %lld of the same run: this is not the store that we "
                 "knew; one that was set back to a backup is another (give another --rdzv-id)",
                 (long long)revision, (long long)known);
    r->stranger = r->giving_up = true;
}

void contact_advance(struct rendezvous *r) {
    const struct contact *c = &r->contact;
    int64_t at_ns = (is_joining(c) ? r->start_ns : c->heard_ns) + contact_limit_ns(r);
    if (r->giving_up)
        return;
    at_ns = at_ns > c->patience_ns ? at_ns : c->patience_ns;
    if (r->now.monotonic_ns < at_ns)
        wake_at(r, at_ns);
    else if (c->missed)
        r->giving_up = true;
    tell(r);
    join_limit(r);
}
