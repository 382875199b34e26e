/* Measures how long a job is without a coordinator. */
#include "harness/invariants/judge.h"

#include <string.h>

/* Of each place in the line of those who may. */
#define STAGGER_NS (20 * JUDGE_MS)
#define MARGIN_NS  (1500 * JUDGE_MS)
enum { UNPLACED = 17 /* the most that who has no place waits behind the last */ };

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static bool had_joined(const struct judge *j, const char *inc, const char *uid, int64_t at_ns) {
    for (size_t i = j->times->n_joins; i--;)
        if (strcmp(j->times->joins[i].uid, uid) == 0)
            return j->times->joins[i].at_ns <= at_ns && strcmp(j->times->joins[i].inc, inc) == 0;
    return false;
}

/* An agent that runs could have, from then on. */
static bool is_waited_for(const struct judge *j, const char *inc, int64_t since_ns) {
    for (int i = 0; i < j->n_nodes; i++) {
        const char *uid = j->ops->session(j->world, i);
        if (uid && *uid && judge_has_session(j, inc, uid) && had_joined(j, inc, uid, since_ns) &&
            judge_node(j, i)->stopped_until_ns <= since_ns)
            return true;
    }
    return false;
}

static void on_put(struct judge *j, const struct op *op) {
    const char *before = j->times ? j->times->lead.before : "";
    if (!*before || strcmp(before, op->value->lead.uid) == 0)
        return;
    if (judge_has_session(j, op->key.inc, before))
        invariant_broken(j, &invariant_takeover, "%s takes the lead from %s, which has a session",
                         op->value->lead.uid, before);
    int64_t suspect_ns = j->job.timing.suspect_ns,
            stagger_ns = STAGGER_NS * (j->n_nodes + UNPLACED);
    int64_t vacant_ns = j->times->lead.vacant_ns;
    int64_t since_ns = vacant_ns ? vacant_ns : j->times->lead.silent_ns + suspect_ns / 100 * 102;
    since_ns = later(since_ns, j->ops->quiet_ns(j->world));
    if (since_ns > j->now_ns || !is_waited_for(j, op->key.inc, since_ns - suspect_ns))
        return;
    judge_risk(j, INVARIANT_takeover);
    if (j->now_ns - since_ns > suspect_ns + stagger_ns + MARGIN_NS)
        invariant_broken(j, &invariant_takeover,
                         "%s takes the lead %lld ms after it could have been taken from %s",
                         op->value->lead.uid, (long long)((j->now_ns - since_ns) / JUDGE_MS),
                         before);
}

const struct invariant invariant_takeover = {
    .name = "takeover",
    .number = "I5",
    .summary = "a coordinator that is gone is replaced in time, one that is there is not",
    .text = "The lead is taken only from who has no session any more, or together with its death "
            "certificate; and, when nothing is disturbed, within suspect, for who has stood still "
            "itself, 20 ms for each place in line and a second and a half after its session has "
            "ended or it was silent for suspect.",
    .kinds = 1u << KEY_LEAD,
    .on_put = on_put,
};
