#include "agent/core/state.h"

/* When the store was heard last, what people are told while it is not, and when this agent gives
 * up on it: from then on nobody here knows how the job ends. */

#define SECOND 1000000000LL

void contact_made(struct rendezvous *r) {
    struct contact *c = &r->contact;
    if (c->told)
        action_store(r, false, c->heard_ns ? "answers again" : "answers now");
    c->heard_ns = r->now.monotonic_ns;
    c->missed = c->told = false;
}

void contact_missed(struct rendezvous *r) {
    r->contact.missed = true;
}

/* A store that was never heard is one that is not up yet: that is said at the first request without
 * an answer. Later a lost reply or two is nothing, but at the fence the workers die of it. */
static void tell(struct rendezvous *r) {
    struct contact *c = &r->contact;
    const struct rendezvous_config *config = &r->config;
    int64_t silent_ns = r->now.monotonic_ns - c->heard_ns;
    int64_t fence_ns = rendezvous_timing(r).fence_ns;
    if (c->told || !c->missed || goodbye_due(r))
        return;
    if (c->heard_ns && silent_ns < fence_ns) {
        wake_at(r, c->heard_ns + fence_ns);
        return;
    }
    c->told = true;
    if (c->heard_ns)
        action_store(r, true,
                     "has not answered for %lld.%lld s; waiting up to %lld s for it (--rdzv-conf "
                     "give_up=...)",
                     (long long)(silent_ns / SECOND), (long long)(silent_ns % SECOND * 10 / SECOND),
                     (long long)(config->give_up_ns / SECOND));
    else
        action_store(r, true,
                     "does not answer yet; trying for up to %lld s (--rdzv-conf join_timeout=...)",
                     (long long)(config->join_timeout_ns / SECOND));
}

void contact_advance(struct rendezvous *r) {
    const struct contact *c = &r->contact;
    int64_t limit_ns = c->heard_ns ? r->config.give_up_ns : r->config.join_timeout_ns;
    int64_t at_ns = (c->heard_ns ? c->heard_ns : r->start_ns) + limit_ns;
    if (r->giving_up)
        return;
    if (r->now.monotonic_ns < at_ns)
        wake_at(r, at_ns);
    else
        r->giving_up = true;
    tell(r);
}
