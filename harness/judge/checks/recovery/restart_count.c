/* Follows TORCHELASTIC_RESTART_COUNT from round to round. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/spans.h"

#include "base/str.h"

#include <signal.h>
#include <stdio.h>

static const char broken[] =
    "Restart count: a worker's failure costs one restart, losing or gaining a node costs none.";

/* What may have brought about the next round, found once for all of them. */
struct happened {
    const struct trial *t;
    struct spans incidents;
    struct moments others; /* is_other */
};

/* What happened between two complete rounds, as far as it decides what the change costs. */
struct causes {
    const struct incident *worker, *node, *join, *other; /* the first of each, NULL: none */
    bool failed_by_itself; /* a worker that no fault aimed at may have ended with an error of its
                              own */
    const struct worker *alone; /* it certainly has, and nothing else happened; NULL: not so */
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

/* Struck while workers of the round lived there. Before the fault, a node whose workers had all
 * ended had said so, or could have: then the round did not lose it. */
static bool struck_workers(const struct incident *i, const struct round *r) {
    for (size_t k = 0; k < r->n; k++)
        if (incident_hits(i, r->workers[k]) &&
            (!r->workers[k]->exit_ns || r->workers[k]->exit_ns >= i->fired_ns))
            return true;
    return false;
}

/* How long a node may be silent before the others give it up, by the profile of the job; 0: the
 * scenario sets times of its own. */
static int64_t suspect_ns(const struct job_spec *job) {
    const char *profile = job_rdzv_conf(job, "profile");
    if (job_rdzv_conf(job, "suspect") || job_rdzv_conf(job, "fence") || job_rdzv_conf(job, "hb"))
        return 0;
    return profile && str_eq(profile, "fast") ? 800000000 : 6000000000;
}

/* A cut of one node from all others, the store too, or one that stands still. */
static bool isolates(const struct scenario *s, const struct incident *i) {
    if (!incident_has(i, EFFECT_PARTS_NETWORK | EFFECT_STALLS_NODE) || i->targets_n != 1)
        return false;
    for (size_t k = 0; k < s->timeline_n; k++)
        if (str_eq(s->timeline[k].id, i->id) && s->timeline[k].with_n)
            return false; /* of some planes, or between groups: who lost the store? */
    return true;
}

/* A member that was cut off until the next round began without it, or for longer than it may be
 * silent, has been given up or fenced: the round lost it, as if it had died. A shorter cut may have
 * gone unnoticed. */
static bool cut_away(const struct trial *t, const struct incident *i, const struct round *q) {
    if (!isolates(t->scenario, i) || !i->evidence_seq)
        return false;
    int64_t suspect = suspect_ns(&t->scenario->job);
    bool healed = i->recovered && i->recovered_ns < q->first_start_ns;
    int64_t lasted = (healed ? i->recovered_ns : q->first_start_ns) - i->t0_ns;
    return (!healed && !round_on_node(q, i->targets[0].node)) || (suspect && lasted >= suspect);
}

/* One that was not in the round before, and is back since it was healed. */
static bool came_back(const struct trial *t, const struct incident *i, const struct round *p,
                      const struct round *q) {
    return i->recovered && i->recovered_ns >= p->first_start_ns &&
           i->recovered_ns <= q->first_start_ns && isolates(t->scenario, i) &&
           !round_on_node(p, i->targets[0].node) && round_on_node(q, i->targets[0].node);
}

/* By an exit code, or a signal that no launcher ends its workers with. */
static bool has_failed(const struct worker *w) {
    bool ended = w->exit_signal == SIGTERM || w->exit_signal == SIGKILL || w->exit_signal == SIGINT;
    return worker_failed(w) && !ended;
}

static bool may_have_failed(const struct worker *w) {
    return w->exit_ns && (!w->exit_known || has_failed(w));
}

static bool same_nodes(const struct round *p, const struct round *q) {
    for (size_t i = 0; i < q->n; i++)
        if (!round_on_node(p, q->workers[i]->node))
            return false;
    return round_nodes(p) == round_nodes(q);
}

/* An agent that ended, or a fault of which nobody knows whom it struck. */
static bool is_other(const struct record *r) {
    return (r->source == SOURCE_KERNEL && record_is(r, "agent-exit")) ||
           (r->source == SOURCE_HARNESS && record_is(r, "fault-fired"));
}

static bool anything_else(const struct happened *all, const struct round *p,
                          const struct round *q) {
    size_t at = 0;
    return moments_next(&all->others, &at, p->first_start_ns, q->first_start_ns);
}

/* The first worker of the round that ended otherwise than well did so by itself, and there is
 * nothing else for which a launcher could have begun the next round on the same nodes. */
static const struct worker *failed_alone(const struct happened *all, const struct causes *c,
                                         const struct round *p, const struct round *q) {
    const struct worker *w = round_failed(p);
    bool alone = w && has_failed(w) && !c->worker && !c->node && !c->join && !c->other;
    return alone && same_nodes(p, q) && !anything_else(all, p, q) ? w : NULL;
}

/* What an agent was sent may leave it where it was: it is lost when it was seen to end. */
static bool took_agent(const struct happened *all, const struct incident *i,
                       const struct round *q) {
    const struct incident_target *target = i->targets_n ? &i->targets[0] : NULL;
    const struct record *r;
    if (!incident_has(i, EFFECTS_TAKE_AGENT) || !i->evidence_ns ||
        i->evidence_ns > q->first_start_ns)
        return false;
    if (!target || !str_eq(target->what, "agent") || !incident_has(i, EFFECT_ENDS_AGENT))
        return true;
    for (size_t at = 0; (r = moments_next(&all->others, &at, i->fired_ns, q->first_start_ns));)
        if (record_is(r, "agent-exit") && str_eq(r->node, target->node))
            return true;
    return false;
}

static struct causes causes_of(const struct happened *all, const struct round *p,
                               const struct round *q) {
    const struct trial *t = all->t;
    struct causes c = {0};
    for (size_t k = 0; k < all->incidents.n; k++) {
        k = spans_next(&all->incidents, k, p->first_start_ns, q->first_start_ns);
        if (k == all->incidents.n)
            break;
        const struct incident *i = t->incidents->v[k];
        if (i->in_force && came_back(t, i, p, q))
            keep_first(&c.join, i);
        if (!i->in_force || i->t0_ns > q->first_start_ns)
            continue;
        if (i->t0_ns < p->first_start_ns) {
            if (i->recovered && i->recovered_ns >= p->first_start_ns)
                keep_first(&c.other, i); /* it lasted into the round */
            continue;
        }
        const char *what = i->targets_n ? i->targets[0].what : "";
        bool member = hits_member(i, p);
        if (member && struck_workers(i, p) && (took_agent(all, i, q) || cut_away(t, i, q)))
            keep_first(&c.node, i);
        else if (!incident_has(i, EFFECTS_TAKE_AGENT) && str_eq(what, "worker") && member &&
                 i->evidence_seq)
            keep_first(&c.worker, i);
        else if (incident_has(i, EFFECT_STARTS_NODE))
            keep_first(&c.join, i);
        else if (!incident_has(i, EFFECTS_TAKE_AGENT) || member || incident_hits_store(i))
            keep_first(&c.other, i);
    }
    for (size_t k = 0; k < p->n; k++)
        c.failed_by_itself |= may_have_failed(p->workers[k]);
    c.alone = failed_alone(all, &c, p, q);
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
    } else if (c->alone) {
        cost.min = 1;
    }
    if (c->alone)
        snprintf(cost.why, sizeof(cost.why), "rank %d on %s failed by itself", c->alone->rank,
                 c->alone->node);
    else if (i)
        snprintf(cost.why, sizeof(cost.why), "%s (%s)", what, i->id);
    else
        snprintf(cost.why, sizeof(cost.why), "what ended round %d is not certain", p->number);
    cost.max += q->number - p->number - 1; /* each round that never became complete may have cost */
    return cost;
}

static bool judge_change(const struct happened *all, struct finding *f, const struct round *p,
                         const struct round *q) {
    const struct trial *t = all->t;
    int before = p->workers[0]->restart_count, after = q->workers[0]->restart_count;
    struct causes causes = causes_of(all, p, q);
    struct cost cost = cost_of(&causes, p, q);
    char number[40];
    if (after - before >= cost.min && after - before <= cost.max)
        return true;
    const struct record *fenced =
        causes.alone && after == before
            ? check_said_fenced(t->history, NULL, p->first_start_ns, q->first_start_ns)
            : NULL;
    if (fenced) {
        finding_prove(f, fenced->seq);
        return finding_unknown(
            f, broken,
            "rank %d on %s failed by itself in round %d, which has cost nothing; the "
            "launcher says that %s had lost the store",
            causes.alone->rank, causes.alone->node, p->number, fenced->node);
    }
    if (after == before && cost.min && check_may_be_fenced(t, p, NULL, q->first_start_ns)) {
        finding_prove(f, q->workers[0]->start_seq);
        return finding_unknown(
            f, broken,
            "%d in round %d, as in round %d before it (%s), but this host was short of "
            "time: the round may have lost a node whose agent was silent for too long",
            after, q->number, p->number, cost.why);
    }
    snprintf(number, sizeof(number), cost.min == cost.max ? "%d" : "%d to %d", before + cost.min,
             before + cost.max);
    const char *expected =
        finding_expected(f, "TORCHELASTIC_RESTART_COUNT %s in round %d: %s", number, q->number,
                         after < before ? "it never goes back" : cost.why);
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
    finding_prove(f, r->workers[0]->start_seq);
    return finding_fail(f, broken, "TORCHELASTIC_RESTART_COUNT 0 in the first round",
                        "%d in round %d, the first that was complete", count, r->number);
}

static const char *idle(const struct scenario *s) {
    return s->torchrun_semantics
               ? "torchrun counts by agent; restarts of one agent are not comparable"
           : str_eq(s->job.launcher, "template") ? "a template restarts by rules of its own"
                                                 : NULL;
}

static bool judge_rounds(const struct happened *all, struct finding *f) {
    const struct round *before = NULL;
    for (size_t i = 0; i < all->t->rounds->n; i++) {
        const struct round *r = all->t->rounds->v[i];
        if (!r->complete)
            continue;
        if (before ? !judge_change(all, f, before, r) : !judge_first(f, r))
            return false;
        before = r;
    }
    if (!before)
        return finding_skip(f, "no round was complete");
    return finding_pass(f, "%d after %d round%s, as the faults imply",
                        before->workers[0]->restart_count, before->number,
                        before->number == 1 ? "" : "s");
}

static bool judge(const struct trial *t, struct finding *f) {
    struct happened all = {.t = t};
    if (!check_sees_rounds(t, f))
        return false;
    spans_of_incidents(&all.incidents, t->arena, t->incidents);
    moments_init(&all.others, t->arena, t->history, is_other);
    return judge_rounds(&all, f);
}

const struct check check_restart_count = {
    .name = "restart_count",
    .summary = "the restart count rises by one for a worker's failure and not otherwise",
    .text =
        "The restart count is the job's budget: TORCHELASTIC_RESTART_COUNT starts at 0, rises "
        "by one for each round that failed by its workers, struck or by themselves, stays where a "
        "node was lost, left or came, and never goes back. A node that was cut off for longer than "
        "it may be silent is "
        "lost; a shorter cut may cost one or none. On a host so short of time that a node may have "
        "been given up, a failure that cost nothing is unknown. Judged by what the workers were "
        "given and how "
        "they ended, and by what the faults did.",
    .example = "rankquake run scenarios/restart/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(WIRE) | SOURCES(LAUNCHER),
    .not_applicable = idle,
    .judge = judge,
};
