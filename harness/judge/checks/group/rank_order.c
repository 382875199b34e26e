/* Compares the order of the nodes of each round with that of the round before. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/spans.h"

#include "base/str.h"

static const char broken[] = "Order: nodes that survive keep their order, and rank 0 among them.";

static int group_of(const struct round *r, const char *node) {
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->workers[i]->node, node))
            return r->workers[i]->group_rank;
    return -1;
}

/* Whoever was cut off or stood still may have been given up meanwhile: it came back as a new one.
 * So does everybody when the store has forgotten them. */
static bool may_be_new(const struct trial *t, const struct round *a, const struct round *b,
                       const char *node) {
    for (size_t k = 0; k < t->incidents->n; k++) {
        const struct incident *i = t->incidents->v[k];
        bool lasted = i->recovered && i->recovered_ns >= a->first_start_ns;
        if (i->in_force && i->t0_ns <= b->first_start_ns &&
            (lasted || i->t0_ns >= a->first_start_ns) &&
            (check_names_node(i, node) || check_took_store(t, i)))
            return true;
    }
    return false;
}

struct agents {
    const struct trial *t;
    struct moments changes; /* every start and end of an agent */
};

static bool is_change(const struct record *r) {
    return r->source == SOURCE_KERNEL &&
           (record_is(r, "agent-exit") || record_is(r, "agent-start"));
}

/* Its workers are in both rounds, and its agent lived from one to the other. */
static bool stays(const struct agents *all, const struct round *a, const struct round *b,
                  const char *node) {
    if (!round_on_node(a, node) || !round_on_node(b, node))
        return false;
    const struct record *r;
    for (size_t i = 0; (r = moments_next(&all->changes, &i, a->first_start_ns, b->first_start_ns));)
        if (str_eq(r->node, node))
            return false;
    return true;
}

/* It surely does when it was left alone, too. */
static bool survives(const struct agents *all, const struct round *a, const struct round *b,
                     const char *node) {
    return stays(all, a, b, node) && !may_be_new(all->t, a, b, node);
}

/* Nothing was done to it, but its agent may not have been run for so long that it was given up. */
static bool may_be_given_up(const struct agents *all, struct finding *f, const struct round *a,
                            const struct round *b, const char *node) {
    if (!check_may_be_fenced(all->t, a, NULL, b->first_start_ns))
        return false;
    finding_unknown(f, broken,
                    "%s has lost its place in round %d, but this host was short of time: its agent "
                    "may have been silent for so long that it came back as a new one",
                    node, b->number);
    finding_prove(f, b->workers[0]->start_seq);
    return true;
}

static bool judge_order(const struct agents *all, struct finding *f, const struct round *a,
                        const struct round *b) {
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < a->n; k++) {
            const char *one = a->workers[i]->node, *two = a->workers[k]->node;
            if (group_of(a, one) >= group_of(a, two) || group_of(b, one) <= group_of(b, two) ||
                !survives(all, a, b, one) || !survives(all, a, b, two))
                continue;
            if (may_be_given_up(all, f, a, b, one))
                return false;
            finding_prove(f, b->workers[0]->start_seq);
            return finding_fail(f, broken, "the order of the round before",
                                "%s came before %s in round %d and after it in round %d", one, two,
                                a->number, b->number);
        }
    return true;
}

static bool judge_first(const struct agents *all, struct finding *f, const struct round *a,
                        const struct round *b) {
    const struct worker *first = round_rank(b, 0);
    if (!first || stays(all, a, b, first->node))
        return true;
    for (size_t i = 0; i < b->n; i++) {
        const char *node = b->workers[i]->node;
        if (!survives(all, a, b, node))
            continue;
        if (may_be_given_up(all, f, a, b, node))
            return false;
        finding_prove(f, first->start_seq);
        return finding_fail(
            f, broken, "rank 0 on a node that has the job's state",
            "rank 0 of round %d is on %s, which is new, although %s survived round %d", b->number,
            first->node, node, a->number);
    }
    return true;
}

static const char *idle(const struct scenario *s) {
    if (s->cluster.scheduler)
        return "a job that its scheduler starts again orders its nodes anew";
    return s->torchrun_semantics ? "torchrun gives no order of the nodes" : NULL;
}

static bool judge_rounds(const struct agents *all, struct finding *f) {
    const struct rounds *rs = all->t->rounds;
    int pairs = 0;
    for (size_t i = 1; i < rs->n; i++) {
        if (!rs->v[i - 1]->complete || !rs->v[i]->complete)
            continue;
        if (!judge_order(all, f, rs->v[i - 1], rs->v[i]) ||
            !judge_first(all, f, rs->v[i - 1], rs->v[i]))
            return false;
        pairs++;
    }
    return finding_pass(f, "the order was kept through %d change%s of round", pairs,
                        pairs == 1 ? "" : "s");
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct record *run = history_newest(t->history, SOURCE_HARNESS, "run");
    if (run && json_get_bool(run->fields, "fixed_ranks", false))
        return finding_skip(f, "the nodes were given fixed ranks");
    if (!check_sees_rounds(t, f))
        return false;
    struct agents all = {.t = t};
    moments_init(&all.changes, t->arena, t->history, is_change);
    return judge_rounds(&all, f);
}

const struct check check_rank_order = {
    .name = "rank_order",
    .summary = "nodes that survive a round keep their order; rank 0 is on one of them",
    .text = "Rank 0 often holds what the others need: the newest state, the checkpoint to "
            "broadcast. So it must not move to a node that has just come while one is left that "
            "was there before. A node that was cut off or stood still in between may have been "
            "given up and have come back as a new one: its place is not judged then, nor is "
            "anybody's when the store was lost with all its data. When the host was so short of "
            "time that any node may have been given up, a different order is unknown, not failed.",
    .example = "rankquake run scenarios/membership/node-leaves.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL),
    .not_applicable = idle,
    .judge = judge,
};
