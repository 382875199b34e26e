#include "agent/core/lifeline.h"

#include "agent/core/state.h"

#include <string.h>

/* --- the store's side --- */

int64_t lifeline_due_ns(enum lifeline_end how, int64_t now_ns) {
    return how == LIFELINE_CLOSED ? now_ns + TIMING_KILL_NS : INT64_MAX;
}

static struct store_key claim_key(const struct lifeline_claim *claim, enum key_kind kind) {
    struct store_key key = {.kind = kind};
    memcpy(key.inc, claim->inc, sizeof(key.inc));
    memcpy(key.uid, claim->uid, sizeof(key.uid));
    return key;
}

/* As T4, but from the session itself: it has not ended, and it is the one that was named. */
void lifeline_certify(const struct lifeline_claim *claim, struct lifeline_certificate *ret) {
    memset(ret, 0, sizeof(*ret));
    ret->compare = (struct compare){
        .key = claim_key(claim, KEY_SESSION), .target = COMPARE_CREATE, .number = claim->revision};
    ret->gone.gone.why = GONE_SILENT;
    ret->ops[0] = (struct op){.key = claim_key(claim, KEY_SESSION)};
    ret->ops[1] = (struct op){.key = claim_key(claim, KEY_GONE), .put = true, .value = &ret->gone};
    ret->txn = (struct txn){.compares = &ret->compare,
                            .n_compares = 1,
                            .ops = ret->ops,
                            .n_ops = 2,
                            .lease = key_lease(claim->inc)};
}

/* --- the agent's side: one for each session, made while no worker lives --- */

void lifeline_drop(struct rendezvous *r) {
    struct lifeline *l = &r->lifeline;
    if (l->id)
        action_add(r, ACTION_LIFELINE_DROP)->lifeline.id = l->id;
    l->id = 0;
    l->open = false;
}

/* One that is not open when workers are started is given up: they would not hold it, and it would
 * end before them. */
bool lifeline_inherit(struct rendezvous *r) {
    if (!r->lifeline.open)
        lifeline_drop(r);
    return r->lifeline.open;
}

void lifeline_advance(struct rendezvous *r) {
    struct lifeline *l = &r->lifeline;
    bool wanted = r->config.lifeline && r->session.phase == SESSION_ACTIVE && !leave_due(r) &&
                  r->group.state == GROUP_IDLE;
    if (!wanted || l->id)
        return;
    if (r->now.monotonic_ns < l->retry_ns) {
        wake_at(r, l->retry_ns);
        return;
    }
    struct action *a = action_add(r, ACTION_LIFELINE_OPEN);
    l->id = a->lifeline.id = ++r->next_id;
    memcpy(a->lifeline.claim.inc, r->cur.inc, INC_SIZE);
    memcpy(a->lifeline.claim.uid, r->session.uid, UID_SIZE);
    a->lifeline.claim.revision = r->session.revision;
}

/* One that breaks is made anew when the workers that hold it are gone. */
void lifeline_event(struct rendezvous *r, const struct event *ev) {
    struct lifeline *l = &r->lifeline;
    if (!l->id || l->id != ev->lifeline.id)
        return;
    l->open = ev->lifeline.open;
    if (l->open)
        return;
    l->id = 0;
    l->retry_ns = r->now.monotonic_ns + r->cur.timing.suspect_ns;
}
