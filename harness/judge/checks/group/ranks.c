/* Checks the numbers in the environments of each round's workers. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/group/overlap.h"

#include "base/str.h"

static const char broken[] = "Ranks: every worker has a place of its own in the group.";

/* All of them fail in the same way: what should be, what this worker was given. */
#define WRONG(w, expected, ...)                                                                    \
    (finding_prove(f, (w)->start_seq), finding_fail(f, broken, expected, __VA_ARGS__))

static bool judge_environment(struct finding *f, const struct worker *w) {
    static const char *const needed[] = {"RANK",
                                         "LOCAL_RANK",
                                         "GROUP_RANK",
                                         "ROLE_RANK",
                                         "WORLD_SIZE",
                                         "LOCAL_WORLD_SIZE",
                                         "ROLE_WORLD_SIZE",
                                         "MASTER_ADDR",
                                         "MASTER_PORT",
                                         "TORCHELASTIC_RESTART_COUNT",
                                         "TORCHELASTIC_MAX_RESTARTS",
                                         "TORCHELASTIC_RUN_ID"};
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
        if (!*json_get_string(w->env, needed[i], ""))
            return WRONG(w, "all of torchrun's variables are in the environment of every worker",
                         "process %lld on %s of round %d was started without %s", (long long)w->pid,
                         w->node, w->round, needed[i]);
    if (w->rank < 0 || w->rank >= w->world_size)
        return WRONG(w, "RANK lies between 0 and WORLD_SIZE - 1",
                     "process %lld on %s of round %d was given RANK=%s, WORLD_SIZE=%s",
                     (long long)w->pid, w->node, w->round, json_get_string(w->env, "RANK", ""),
                     json_get_string(w->env, "WORLD_SIZE", ""));
    return true;
}

/* The same rank twice opens another round: same world, same master, at the same time. */
static bool judge_twins(struct finding *f, const struct overlap *o, const struct round *r) {
    const struct worker *first = r->workers[0];
    const struct round *earlier;
    for (size_t i = 0; (earlier = overlap_next(o, &i, r));) {
        const struct worker *other = earlier->workers[0];
        const struct worker *twin = round_rank(earlier, first->rank);
        if (!twin || !str_eq(other->master_addr, first->master_addr) ||
            !str_eq(other->master_port, first->master_port) ||
            other->restart_count != first->restart_count || other->world_size != first->world_size)
            continue;
        finding_prove(f, twin->start_seq);
        return WRONG(first, "each RANK is given to one worker",
                     "RANK %d was given twice in one group: on %s and on %s", first->rank,
                     twin->node, first->node);
    }
    return true;
}

/* The workers of one node: ranks in one piece, numbered from 0 within it. */
static bool judge_node(const struct trial *t, struct finding *f, const struct round *r,
                       const char *node) {
    bool virtual = scenario_gives_launcher(t->scenario, "--virtual-local-rank");
    int lowest = r->world_size, n = 0, group = -1;
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->workers[i]->node, node)) {
            lowest = r->workers[i]->rank < lowest ? r->workers[i]->rank : lowest;
            group = r->workers[i]->group_rank;
            n++;
        }
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        if (!str_eq(w->node, node))
            continue;
        if (w->rank >= lowest + n)
            return WRONG(w, "the ranks of one node follow each other",
                         "round %d: %s has %d workers, with ranks from %d to %d", r->number, node,
                         n, lowest, w->rank);
        if (virtual && w->local_rank)
            return WRONG(w, "LOCAL_RANK is 0 under --virtual-local-rank",
                         "round %d: rank %d on %s has LOCAL_RANK %d", r->number, w->rank, node,
                         w->local_rank);
        if (!virtual && w->local_rank != w->rank - lowest)
            return WRONG(w, "LOCAL_RANK counts the workers of a node from 0, in the order of RANK",
                         "round %d: rank %d on %s has LOCAL_RANK %d, it is number %d", r->number,
                         w->rank, node, w->local_rank, w->rank - lowest);
        if (w->local_world_size != n)
            return WRONG(w, "LOCAL_WORLD_SIZE is the number of workers on the node",
                         "round %d: rank %d on %s was told %d, the node has %d", r->number, w->rank,
                         node, w->local_world_size, n);
        if (w->group_rank != group)
            return WRONG(w, "GROUP_RANK is the same for all workers of a node",
                         "round %d: %s has workers with GROUP_RANK %d and %d", r->number, node,
                         group, w->group_rank);
    }
    return true;
}

static bool judge_groups(struct finding *f, const struct round *r) {
    int nodes = round_nodes(r);
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        if (w->group_rank < 0 || w->group_rank >= nodes)
            return WRONG(w, "GROUP_RANK counts the nodes of the round from 0",
                         "round %d has %d node%s; rank %d on %s has GROUP_RANK %d", r->number,
                         nodes, nodes == 1 ? "" : "s", w->rank, w->node, w->group_rank);
        if (w->group_world_size >= 0 && w->group_world_size != nodes)
            return WRONG(w, "GROUP_WORLD_SIZE is the number of nodes of the round",
                         "round %d: rank %d on %s was told %d, there are %d", r->number, w->rank,
                         w->node, w->group_world_size, nodes);
        for (size_t k = 0; k < i; k++)
            if (r->workers[k]->group_rank == w->group_rank && !str_eq(r->workers[k]->node, w->node))
                return WRONG(w, "each node has a GROUP_RANK of its own",
                             "round %d: %s and %s both have GROUP_RANK %d", r->number,
                             r->workers[k]->node, w->node, w->group_rank);
    }
    return true;
}

static bool judge_roles(struct finding *f, const struct round *r) {
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i], *twin = NULL;
        int n = 0;
        for (size_t k = 0; k < r->n; k++) {
            if (!str_eq(r->workers[k]->role, w->role))
                continue;
            n++;
            if (k < i && r->workers[k]->role_rank == w->role_rank)
                twin = r->workers[k];
        }
        if (twin)
            return WRONG(w, "each worker of a role has a ROLE_RANK of its own",
                         "round %d: ranks %d and %d both have ROLE_RANK %d", r->number, twin->rank,
                         w->rank, w->role_rank);
        if (w->role_rank < 0 || w->role_rank >= n || w->role_world_size != n)
            return WRONG(
                w, "ROLE_RANK counts the workers of a role from 0, ROLE_WORLD_SIZE is their number",
                "round %d: rank %d has ROLE_RANK %d of ROLE_WORLD_SIZE %d; the role has %d "
                "workers",
                r->number, w->rank, w->role_rank, w->role_world_size, n);
    }
    return true;
}

static bool judge_round(const struct trial *t, struct finding *f, const struct overlap *o,
                        const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (!judge_environment(f, r->workers[i]))
            return false;
    if (!judge_twins(f, o, r))
        return false;
    if (!r->complete)
        return true;
    for (size_t i = 0; i < r->n; i++)
        if (!judge_node(t, f, r, r->workers[i]->node))
            return false;
    return judge_groups(f, r) && judge_roles(f, r);
}

/* Of a template's workers, and of ranks that the job has started itself, nothing more is asked than a
 * place in the group. */
static bool judge_places(struct finding *f, const struct overlap *o, const struct round *r) {
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        if (w->rank < 0 || w->rank >= w->world_size)
            return WRONG(w, "RANK lies between 0 and WORLD_SIZE - 1",
                         "process %lld on %s of round %d was given RANK %d, WORLD_SIZE %d",
                         (long long)w->pid, w->node, w->round, w->rank, w->world_size);
    }
    return judge_twins(f, o, r);
}

static bool judge(const struct trial *t, struct finding *f) {
    struct overlap o;
    bool well = true;
    if (!check_sees_rounds(t, f))
        return false;
    overlap_init(&o, t->arena, t->rounds);
    for (size_t i = 0; i < t->rounds->n && well; i++)
        well = check_template(t) || t->rounds->v[i]->workers[0]->spawned
                   ? judge_places(f, &o, t->rounds->v[i])
                   : judge_round(t, f, &o, t->rounds->v[i]);
    return well && finding_pass(f, "%zu workers in %zu round%s, each with a rank of its own",
                                t->rounds->workers_n, t->rounds->n, t->rounds->n == 1 ? "" : "s");
}

const struct check check_ranks = {
    .name = "ranks",
    .summary = "RANK, LOCAL_RANK, GROUP_RANK and ROLE_RANK number the workers without gap or twin",
    .text = "In every round RANK is given once each from 0 to WORLD_SIZE - 1 and follows on within "
            "a node; LOCAL_RANK, GROUP_RANK and ROLE_RANK number the workers of a node, the nodes "
            "and the workers of a role from 0. Judged by the environment that each worker was "
            "started with.",
    .example = "rankquake run scenarios/membership/node-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL),
    .told = true,
    .judge = judge,
};
