/* Looks for a job that the store has forgotten while somebody leads it. */
#include "harness/invariants/judge.h"

#include <string.h>

/* Half of the lease's least time: in it a coordinator that nothing keeps from it has renewed it. */
static const int64_t RENEWED_NS = 30000 * JUDGE_MS;

static bool leads(const struct judge *j, int node) {
    const char *uid = j->ops->session(j->world, node);
    return uid && judge_node(j, node)->stopped_until_ns <= j->now_ns &&
           strcmp(uid, j->times->lead.uid) == 0;
}

static void on_forgotten(struct judge *j) {
    int64_t since_ns = j->times->lead.since_ns, struck_ns = j->times->struck_until_ns;
    if (j->now_ns < (since_ns > struck_ns ? since_ns : struck_ns) + RENEWED_NS)
        return;
    for (int i = 0; i < j->n_nodes; i++)
        if (leads(j, i))
            invariant_broken(j, &invariant_remembered,
                             "the store forgets the job, which n%d has led for %lld ms", i,
                             (long long)((j->now_ns - since_ns) / JUDGE_MS));
}

/* Who has led for longer than that could have lost it. */
static void on_end(struct judge *j, bool over, bool late) {
    if (j->times && j->outcome != OUTCOME_NONE &&
        j->now_ns - j->times->lead.since_ns >= 2 * RENEWED_NS)
        judge_risk(j, INVARIANT_remembered);
}

const struct invariant invariant_remembered = {
    .name = "remembered",
    .number = "I4",
    .summary = "the store forgets no job that somebody leads",
    .text = "The lease of a job, and with it its restarts and the numbers of its rounds, ends only "
            "when nobody has coordinated it for a long time: not while an agent holds the lead "
            "and nothing has kept it from the store for 30 seconds.",
    .on_forgotten = on_forgotten,
    .on_end = on_end,
};
