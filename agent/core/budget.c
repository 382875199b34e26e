/* What the last round costs. Decided from facts in the store alone, once each of its members has a
 * certificate, so that whoever decides comes to the same answer. */
#include "agent/core/state.h"

static size_t members_of_last(const struct view *v) {
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        n += v->members[i]->rank_last >= 0;
    return n;
}

bool budget_settled(const struct view *v) {
    if (v->head.last_round && members_of_last(v) != (size_t)v->head.last_n)
        return false; /* somebody deleted its plan: nothing can be known */
    for (size_t i = 0; i < v->n; i++) {
        const struct member *m = v->members[i];
        if (m->rank_last >= 0 && !m->acked && !m->done && !m->gone)
            return false;
    }
    return true;
}

/* A member counts as lost when it was gone before it said anything, or was fenced. */
static bool is_lost(const struct member *m) {
    int64_t said = m->acked ? m->ack_revision : 0;
    if (m->done && (!said || m->done_revision < said))
        said = m->done_revision;
    if (m->acked && m->ack.why == ACK_FENCED)
        return true;
    return !said || (m->gone && m->gone_revision < said);
}

int budget_cost(const struct view *v) {
    if (v->head.cause != CAUSE_FAILURE)
        return 0;
    for (size_t i = 0; i < v->n; i++)
        if (v->members[i]->rank_last >= 0 && is_lost(v->members[i]))
            return 0;
    return 1;
}
