/* Compares the places that workers are told within their role, and among all. */
#include "harness/invariants/judge.h"

#include <string.h>

static bool meet(int a, int b, int a_slots, int b_slots) {
    return a < b + b_slots && b < a + a_slots;
}

static void judge_pair(struct judge *j, int node, const struct round_spec *s, int other) {
    const struct judged_place *p = &judge_group(j, other)->place;
    if (s->group_rank == p->group_rank ||
        (s->group_rank < p->group_rank) != (s->rank_base < p->rank_base))
        invariant_broken(j, &invariant_roles,
                         "n%d has group rank %d and ranks from %d on, n%d %d and from %d on", node,
                         s->group_rank, s->rank_base, other, p->group_rank, p->rank_base);
    if (strcmp(p->role, s->role) != 0)
        return;
    if (p->role_world != s->role_world)
        invariant_broken(j, &invariant_roles, "n%d is told of %d workers of its role, n%d of %d",
                         node, s->role_world, other, p->role_world);
    if (meet(s->role_rank_base, p->role_rank_base, s->local_world, p->slots))
        invariant_broken(j, &invariant_roles, "n%d and n%d have the same ranks of their role", node,
                         other);
    if ((s->role_rank_base < p->role_rank_base) != (s->rank_base < p->rank_base))
        invariant_broken(j, &invariant_roles,
                         "the ranks of n%d and n%d in their role are not in "
                         "the order of their ranks",
                         node, other);
}

/* Worlds that forget groups that have ended do not know who else is in the round. */
static void on_start(struct judge *j, int node, const struct round_spec *s) {
    int all = s->local_world, same = s->local_world;
    if (!j->job.kept || !s->role)
        return;
    judge_risk(j, INVARIANT_roles);
    if (s->role_rank_base < 0 || s->role_rank_base + s->local_world > s->role_world ||
        s->group_rank < 0 || s->group_rank >= s->group_world)
        invariant_broken(j, &invariant_roles,
                         "n%d has ranks from %d on of %d in its role, and group rank %d of %d",
                         node, s->role_rank_base, s->role_world, s->group_rank, s->group_world);
    for (int i = 0; i < j->n_nodes; i++) {
        const struct judged_group *g = judge_group(j, i);
        if (i == node || g->round != s->round || strcmp(g->place.token, s->token) != 0)
            continue;
        judge_pair(j, node, s, i);
        all += g->place.slots;
        same += strcmp(g->place.role, s->role) == 0 ? g->place.slots : 0;
    }
    if (all == s->world && same != s->role_world)
        invariant_broken(j, &invariant_roles, "%d workers of role %s have begun, of %d", same,
                         s->role, s->role_world);
}

const struct invariant invariant_roles = {
    .name = "roles",
    .number = "I2",
    .summary = "ranks within a role have no gap and no twin, and all are told the same of them",
    .text = "The nodes of a round that have the same role are told the same number of workers in "
            "it; their ranks in it are all different, below that number, without a gap, and in the "
            "order of their ranks in the job, which is that of the group ranks.",
    .check = "ranks",
    .on_start = on_start,
};
