/* Counts who trained on which shard in each step. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/training/ledger.h"

static const char broken[] =
    "Samples: every step counts every shard once, and no step is left out.";

/* One round and step of the ledger. */
struct samples_group {
    const struct ledger_entry *v;
    size_t n;
    const struct round *round;
    int64_t step;
};

#define WRONG(seq, expected, ...)                                                                  \
    (finding_prove(f, seq), finding_fail(f, broken, expected, __VA_ARGS__))

static const struct ledger_entry *entry_of(const struct samples_group *g, const struct worker *w) {
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].worker == w)
            return &g->v[i];
    return NULL;
}

/* owner[s] becomes the entry that counted shard s; false when two did. */
static bool judge_twice(struct finding *f, const struct samples_group *g,
                        const struct ledger_entry **owner) {
    for (size_t i = 0; i < g->n; i++) {
        const struct ledger_entry *e = &g->v[i];
        if (entry_of(g, e->worker) != e)
            return WRONG(e->record->seq, "each step once from each rank",
                         "rank %d on %s reported step %lld twice in round %d", e->worker->rank,
                         e->worker->node, (long long)g->step, g->round->number);
        json_each(s, e->shards) {
            int64_t id = json_i64(s, -1);
            if (id < 0 || id >= LEDGER_SHARDS_MAX)
                return WRONG(e->record->seq, "shards are numbered from 0",
                             "rank %d counted shard %lld", e->worker->rank, (long long)id);
            if (owner[id]) {
                finding_prove(f, owner[id]->record->seq);
                return WRONG(
                    e->record->seq, "each shard of a step counted by exactly one rank",
                    "shard %lld of step %lld was counted twice in round %d: by rank %d and rank %d",
                    (long long)id, (long long)g->step, g->round->number, owner[id]->worker->rank,
                    e->worker->rank);
            }
            owner[id] = e;
        }
    }
    return true;
}

/* All ranks have reported, so what nobody counted is lost. */
static bool judge_whole(struct finding *f, const struct samples_group *g,
                        const struct shard_ledger *l, const struct ledger_entry *const *owner,
                        int64_t *samples) {
    int64_t sum = 0;
    for (int s = 0; s < l->shards; s++)
        if (!owner[s])
            return WRONG(g->v[0].record->seq, "each shard of a step counted by exactly one rank",
                         "shard %d of step %lld was counted by nobody in round %d", s,
                         (long long)g->step, g->round->number);
    for (size_t i = 0; i < g->n && sum >= 0; i++)
        sum = g->v[i].samples < 0 ? -1 : sum + g->v[i].samples;
    if (sum < 0)
        return true;
    if (*samples >= 0 && sum != *samples)
        return WRONG(g->v[0].record->seq, "the same number of samples in every step",
                     "%lld samples in step %lld of round %d, %lld in those before", (long long)sum,
                     (long long)g->step, g->round->number, (long long)*samples);
    *samples = sum;
    return true;
}

/* Somebody's word is missing. That is as it should be when it died at this step: it may have
 * counted without saying so. */
static bool judge_partly(struct finding *f, const struct samples_group *g) {
    for (size_t i = 0; i < g->round->n; i++) {
        const struct worker *w = g->round->workers[i];
        if (entry_of(g, w))
            continue;
        if (w->lost_events) {
            finding_prove(f, w->start_seq);
            return finding_unknown(f, broken, "%lld events of rank %d on %s were lost",
                                   (long long)w->lost_events, w->rank, w->node);
        }
        if (w->last_step > g->step)
            return WRONG(g->v[0].record->seq, "every rank makes every step",
                         "rank %d on %s made step %lld but not step %lld of round %d", w->rank,
                         w->node, (long long)w->last_step, (long long)g->step, g->round->number);
        if (w->last_step >= 0 && w->last_step < g->step - 1)
            return WRONG(g->v[0].record->seq, "no rank is more than a step ahead of another",
                         "rank %d on %s ended at step %lld, but rank %d made step %lld", w->rank,
                         w->node, (long long)w->last_step, g->v[0].worker->rank,
                         (long long)g->step);
        if (w->exit_known && !w->exit_code && !w->exit_signal)
            return WRONG(w->exit_seq, "every rank makes every step",
                         "rank %d on %s ended well without step %lld", w->rank, w->node,
                         (long long)g->step);
    }
    return true;
}

/* Where the ledger stands while it is read from the first round to the last. */
struct samples_progress {
    int round;
    int64_t step, samples;             /* -1: none yet */
    const struct ledger_entry **owner; /* by shard, of the group that is looked at */
};

static int64_t resume_step(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->resume_ns)
            return r->workers[i]->resume_step;
    return -1;
}

static bool judge_order(struct finding *f, const struct samples_group *g,
                        const struct samples_progress *p) {
    int64_t seq = g->v[0].record->seq, resumed = resume_step(g->round);
    if (g->round->number == p->round && g->step - 1 != p->step)
        return WRONG(seq, "step after step", "step %lld of round %d came after step %lld",
                     (long long)g->step, p->round, (long long)p->step);
    if (g->round->number == p->round)
        return true;
    if (resumed >= 0 && g->step - 1 != resumed)
        return WRONG(seq, "a round begins with the step after the one it resumed from",
                     "round %d resumed from step %lld and began with step %lld", g->round->number,
                     (long long)resumed, (long long)g->step);
    if (p->round && g->step - 1 > p->step)
        return WRONG(seq, "no step is left out",
                     "round %d began with step %lld; steps %lld to %lld were "
                     "never made",
                     g->round->number, (long long)g->step, (long long)p->step + 1,
                     (long long)g->step - 1);
    return true;
}

static bool any_lost(const struct rounds *rs) {
    for (size_t i = 0; i < rs->workers_n; i++)
        if (rs->workers[i]->lost_events)
            return true;
    return false;
}

/* Nobody owns a shard of the next group yet. */
static void disown(const struct samples_group *g, const struct ledger_entry **owner) {
    for (size_t i = 0; i < g->n; i++)
        json_each(s, g->v[i].shards) owner[json_i64(s, 0)] = NULL;
}

static bool judge_group(struct finding *f, const struct shard_ledger *l,
                        const struct samples_group *g, struct samples_progress *p, bool lost) {
    bool well = (lost || judge_order(f, g, p)) && judge_twice(f, g, p->owner) &&
                ((int)g->n == g->round->world_size ? judge_whole(f, g, l, p->owner, &p->samples)
                                                   : judge_partly(f, g));
    if (well)
        disown(g, p->owner);
    p->round = g->round->number;
    p->step = g->step;
    return well;
}

static bool judge_ledger(const struct trial *t, struct finding *f, const struct shard_ledger *l,
                         struct samples_progress *p) {
    bool lost = any_lost(t->rounds);
    size_t groups = 0;
    for (size_t from = 0, to; from < l->n; from = to, groups++) {
        to = ledger_group(l, from);
        struct samples_group g = {.v = &l->v[from],
                                  .n = to - from,
                                  .round = t->rounds->v[l->v[from].worker->round - 1],
                                  .step = l->v[from].step};
        if (!judge_group(f, l, &g, p, lost))
            return false;
    }
    return finding_pass(f, "%zu steps in %d round%s, each of the %d shards counted once in each",
                        groups, p->round, p->round == 1 ? "" : "s", l->shards);
}

static bool judge(const struct trial *t, struct finding *f) {
    struct shard_ledger l;
    ledger_read(&l, t);
    struct samples_progress p = {.step = -1, .samples = -1};
    p.owner = arena_array(t->arena, const struct ledger_entry *, (size_t)l.shards);
    if (!l.n)
        return finding_skip(f, "the job reports no steps");
    if (!l.shards)
        return finding_skip(f, "the job does not say which shards its steps count");
    return judge_ledger(t, f, &l, &p);
}

const struct check check_samples = {
    .name = "samples",
    .summary = "every shard is counted by exactly one rank in every step, and no step is left out",
    .text = "The ledger of the job's step events: in each step of a round every shard is counted "
            "once, steps follow each other, and a later round goes on where its checkpoint stands, "
            "so that it may repeat steps but never leave one out. The final model is the outside "
            "view of the same thing.",
    .example = "rankquake run scenarios/membership/node-joins.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(JOB) | SOURCES(PROBE) | SOURCES(KERNEL),
    .needs_events = NEEDS_STEPS | NEEDS_SHARDS,
    .judge = judge,
};
