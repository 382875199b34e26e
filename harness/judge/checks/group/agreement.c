/* Compares the environments of all workers of a round with each other. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/group/overlap.h"

#include "base/str.h"

static const char broken[] = "Agreement: all workers of a round are told the same.";

static bool differ(struct finding *f, const struct worker *a, const struct worker *b,
                   const char *variable) {
    finding_prove(f, a->start_seq, b->start_seq);
    return finding_fail(
        f, broken, "the same in the environment of all workers of a round",
        "%s is %s for rank %d on %s and %s for rank %d on %s, which ran at the same time", variable,
        json_get_string(a->env, variable, "(missing)"), a->rank, a->node,
        json_get_string(b->env, variable, "(missing)"), b->rank, b->node);
}

static bool same(const struct worker *a, const struct worker *b, const char *variable) {
    return str_eq(json_get_string(a->env, variable, ""), json_get_string(b->env, variable, ""));
}

/* What is not part of a round's identity must be the same as well. */
static bool judge_within(struct finding *f, const struct round *r) {
    static const char *const variables[] = {"GROUP_WORLD_SIZE", "TORCHELASTIC_MAX_RESTARTS"};
    for (size_t i = 1; i < r->n; i++)
        for (size_t k = 0; k < sizeof(variables) / sizeof(*variables); k++)
            if (!same(r->workers[0], r->workers[i], variables[k]))
                return differ(f, r->workers[0], r->workers[i], variables[k]);
    return true;
}

static bool share_a_rank(const struct round *a, const struct round *b) {
    for (size_t i = 0; i < a->n; i++)
        if (round_rank(b, a->workers[i]->rank))
            return true;
    return false;
}

/* Workers that were told different things make up rounds of their own, none of which completes:
 * such a round began while another was alive and took ranks that the other one lacks. */
static bool judge_between(const struct trial *t, struct finding *f, const struct round *a,
                          const struct round *b) {
    static const char *const variables[] = {"WORLD_SIZE", "TORCHELASTIC_RUN_ID", "MASTER_ADDR",
                                            "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"};
    size_t n = sizeof(variables) / sizeof(*variables) - t->scenario->torchrun_semantics;
    if (share_a_rank(a, b))
        return true;
    for (size_t k = 0; k < n; k++)
        if (!same(a->workers[0], b->workers[0], variables[k]))
            return differ(f, a->workers[0], b->workers[0], variables[k]);
    return true;
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct rounds *rs = t->rounds;
    struct overlap o;
    bool well = true;
    if (!check_sees_rounds(t, f))
        return false;
    overlap_init(&o, t->arena, rs);
    for (size_t i = 0; i < rs->n && well; i++) {
        const struct round *earlier;
        well = judge_within(f, rs->v[i]);
        for (size_t k = 0; well && (earlier = overlap_next(&o, &k, rs->v[i]));)
            well = judge_between(t, f, earlier, rs->v[i]);
    }
    return well && finding_pass(f,
                                "one world size, master, run id and restart count in every round "
                                "(%zu seen)",
                                rs->n);
}

const struct check check_agreement = {
    .name = "agreement",
    .summary = "all workers of a round see one world size, master, run id and restart count",
    .text = "Workers that were told different things wait for each other until a timeout, or train "
            "on in two halves. Judged by the environment that each worker was started with.",
    .example = "rankquake run scenarios/membership/node-joins.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL),
    .told = true,
    .judge = judge,
};
