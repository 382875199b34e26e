/* Looks for agents that end their workers for no reason. */
#include "harness/invariants/judge.h"

/* What an agent knows is older than what the store says: as long as the store says that all is
 * well, it cannot have learnt otherwise. */
static void on_stop(struct judge *j, int node, const struct judged_stop *s) {
    judge_risk(j, INVARIANT_undisturbed);
    const struct judged_node *n = judge_node(j, node);
    const struct judged_group *g = &n->group;
    bool runs = j->has_head && j->head.phase == HEAD_RUN && j->head.round == g->round;
    if (g->alive && runs && !s->fenced && !g->by_guard && !g->failed && !n->signaled &&
        judge_has_session(j, j->inc, g->uid))
        invariant_broken(j, &invariant_undisturbed,
                         "n%d ends its workers of round %lld, and nothing has happened to it", node,
                         (long long)g->round);
}

const struct invariant invariant_undisturbed = {
    .name = "undisturbed",
    .number = "I5",
    .summary = "an agent ends its workers only when something has happened",
    .text = "Workers are ended because one of them failed, their agent was told to leave, its "
            "deadline has passed, its session is gone, or the round is over in the store. A lost "
            "answer, a broken watch and a slow store are none of these.",
    .on_stop = on_stop,
};
