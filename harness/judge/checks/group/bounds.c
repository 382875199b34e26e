/* Counts the nodes of each round, and the workers of each node. */
#include "harness/judge/checks/check.h"

static bool judge_round(const struct trial *t, struct finding *f, const struct round *r) {
    const struct job_spec *job = &t->scenario->job;
    int per = job_ranks_per_node(job), min = job->min_nodes * per, max = job->max_nodes * per;
    int nodes = round_nodes(r);
    if (r->world_size >= min && r->world_size <= max &&
        (!r->complete || r->world_size == nodes * per))
        return true;
    const char *expected =
        finding_expected(f, "%d to %d nodes with %d worker%s each", job->min_nodes, job->max_nodes,
                         per, per == 1 ? "" : "s");
    finding_prove(f, r->workers[0]->start_seq);
    return finding_fail(f, "Bounds: a round has between min and max nodes.", expected,
                        "round %d has WORLD_SIZE %d, on %d node%s%s", r->number, r->world_size,
                        nodes, nodes == 1 ? "" : "s",
                        r->workers[0]->spawned && job->spawns <= 1
                            ? " (the job has started them itself: say job.spawns)"
                            : "");
}

static bool judge(const struct trial *t, struct finding *f) {
    if (!check_sees_rounds(t, f))
        return false;
    for (size_t i = 0; i < t->rounds->n; i++)
        if (!judge_round(t, f, t->rounds->v[i]))
            return false;
    return finding_pass(f, "every round has %d to %d nodes", t->scenario->job.min_nodes,
                        t->scenario->job.max_nodes);
}

const struct check check_bounds = {
    .name = "bounds",
    .summary = "every round has between min and max nodes, each with all of its workers",
    .text = "With fewer than min nodes the job must wait, with more than max the surplus must wait "
            "as spares. Judged by where the workers of a round were really started.",
    .example = "rankquake run scenarios/membership/node-joins.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE),
    .judge = judge,
};
