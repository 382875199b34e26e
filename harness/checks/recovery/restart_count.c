#include "harness/checks/check.h"

#include "agent/base/str.h"

#include <stdio.h>

static const char broken[] =
    "Restart count: a worker's failure costs one restart, losing or gaining a node costs none.";

/* What happened between two complete rounds, as far as it decides what the change costs. */
struct causes {
    const struct incident *worker, *node, *join, *other; /* the first of each, NULL: none */
    bool failed_by_itself; /* a worker that no fault aimed at may have ended with an error of its
                              own */
};

static void keep_first(const struct incident **first, const struct incident *i) {
    if (!*first)
        *first = i;
}

static bool hits_member(const struct incident *i, const struct round *r) {
    for (size_t k = 0; k < r->n; k++)
        if (incident_hits(i, r->workers[k]))
            return true;
    return false;
}

static struct causes causes_of(const struct trial *t, const struct round *p,
                               const struct round *q) {
    struct causes c = {0};
    for (size_t k = 0; k < t->incidents->n; k++) {
        const struct incident *i = t->incidents->v[k];
        if (!i->in_force || i->t0_ns < p->first_start_ns || i->t0_ns > q->first_start_ns)
            continue;
        const char *what = i->targets_n ? i->targets[0].what : "";
        bool member = hits_member(i, p);
        if (i->ends_node && member && i->evidence_ns && i->evidence_ns <= q->first_start_ns)
            keep_first(&c.node, i);
        else if (!i->ends_node && str_eq(what, "worker") && member && i->evidence_seq)
            keep_first(&c.worker, i);
        else if (str_eq(i->fault, "node-start"))
            keep_first(&c.join, i);
        else if (!i->ends_node || member)
            keep_first(&c.other, i);
    }
    for (size_t k = 0; k < p->n; k++)
        c.failed_by_itself |=
            p->workers[k]->exit_ns && (!p->workers[k]->exit_known || p->workers[k]->exit_code);
    return c;
}

struct cost {
    int min, max;
    char why[120];
};

/* The rule for a judge who does not see the store: a node fault on a member before the next start
 * makes it free, a worker fault alone costs one; where the order of two cannot be seen, either. */
static struct cost cost_of(const struct causes *c, const struct round *p, const struct round *q) {
    struct cost cost = {.min = 0, .max = 1};
    const char *what = "";
    const struct incident *i = NULL;
    if (c->node && !c->other && (!c->worker || c->node->t0_ns <= c->worker->t0_ns)) {
        cost.max = 0;
        what = "the round lost a node";
        i = c->node;
    } else if (c->worker && !c->node && !c->join && !c->other) {
        cost.min = 1;
        what = "only workers were hit";
        i = c->worker;
    } else if (c->join && !c->worker && !c->other && !c->failed_by_itself) {
        cost.max = 0;
        what = "a node came";
        i = c->join;
    }
    if (i)
        snprintf(cost.why, sizeof(cost.why), "%s (%s)", what, i->id);
    else
        snprintf(cost.why, sizeof(cost.why), "what ended round %d is not certain", p->number);
    cost.max += q->number - p->number - 1; /* each round that never became complete may have cost */
    return cost;
}

static bool judge_change(const struct trial *t, struct finding *f, const struct round *p,
                         const struct round *q) {
    int before = p->workers[0]->restart_count, after = q->workers[0]->restart_count;
    struct causes causes = causes_of(t, p, q);
    struct cost cost = cost_of(&causes, p, q);
    char expected[200], number[40];
    if (after - before >= cost.min && after - before <= cost.max)
        return true;
    snprintf(number, sizeof(number), cost.min == cost.max ? "%d" : "%d to %d", before + cost.min,
             before + cost.max);
    snprintf(expected, sizeof(expected), "TORCHELASTIC_RESTART_COUNT %s in round %d: %s", number,
             q->number, after < before ? "it never goes back" : cost.why);
    finding_fail(f, broken, expected, "%d on %s%zu worker%s of round %d, after %d in round %d",
                 after, q->n == 1 ? "the " : "all ", q->n, q->n == 1 ? "" : "s", q->number, before,
                 p->number);
    for (size_t i = 0; i < q->n; i++)
        finding_prove(f, q->workers[i]->start_seq);
    return false;
}

static bool judge_first(struct finding *f, const struct round *r) {
    int count = r->workers[0]->restart_count;
    if (count >= 0 && count < r->number)
        return true;
    finding_fail(f, broken, "TORCHELASTIC_RESTART_COUNT 0 in the first round",
                 "%d in round %d, the first that was complete", count, r->number);
    finding_prove(f, r->workers[0]->start_seq);
    return false;
}

static void judge(const struct trial *t, struct finding *f) {
    const struct round *before = NULL;
    if (t->scenario->torchrun_semantics) {
        finding_skip(f, "torchrun counts by agent; restarts of one agent are not comparable");
        return;
    }
    if (!check_sees_rounds(t, f))
        return;
    for (size_t i = 0; i < t->rounds->n; i++) {
        const struct round *r = t->rounds->v[i];
        if (!r->complete)
            continue;
        if (before ? !judge_change(t, f, before, r) : !judge_first(f, r))
            return;
        before = r;
    }
    if (!before)
        finding_skip(f, "no round was complete");
    else
        finding_pass(f, "%d after %d round%s, as the faults imply",
                     before->workers[0]->restart_count, before->number,
                     before->number == 1 ? "" : "s");
}

const struct check check_restart_count = {
    .name = "restart_count",
    .summary = "the restart count rises by one for a worker's failure and not otherwise",
    .text = "The restart count is the job's budget: TORCHELASTIC_RESTART_COUNT starts at 0, rises "
            "by one for each round that failed by its workers, stays where a node was lost, left "
            "or came, and never goes back. Judged by what the workers were given and what the "
            "faults did.",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(WIRE),
    .judge = judge,
};
