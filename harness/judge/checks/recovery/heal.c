/* Looks for steps after a lasting fault was undone. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/spans.h"

#include "base/str.h"
#include "harness/history/clocks.h"

static const char broken[] = "Healing: when what was broken is whole again, the job goes on.";

static bool is_step(const struct record *r) {
    return r->source == SOURCE_JOB && record_is(r, "step");
}

static bool is_end(const struct record *r) {
    return r->source == SOURCE_HARNESS && record_is(r, "job-end");
}

/* 0: none. */
static int64_t first_after(const struct moments *m, int64_t t_ns) {
    size_t at = 0;
    const struct record *r = moments_next(m, &at, t_ns, INT64_MAX);
    return r ? r->t_ns : 0;
}

/* What of the job is asked for each incident. */
struct course {
    const struct agent_end *agents;
    size_t agents_n;
    struct moments steps;
    struct spans broken;
    int64_t end_ns;
};

static bool agent_alive(const struct course *c, int64_t t_ns) {
    const struct agent_end *a = c->agents;
    for (size_t i = 0; i < c->agents_n; i++)
        if (a[i].start_ns <= t_ns && (!a[i].exit_ns || a[i].exit_ns > t_ns))
            return true;
    return false;
}

/* Nothing else of the timeline is still broken, or is broken anew before the job could go on. */
static bool is_last(const struct course *c, const struct incidents *is, const struct incident *i,
                    int64_t until_ns) {
    for (size_t k = 0; k < is->n; k++) {
        k = spans_next(&c->broken, k, i->recovered_ns + 1, until_ns);
        if (k == is->n)
            break;
        const struct incident *o = is->v[k];
        if (o == i || !o->in_force)
            continue;
        if (o->recovered && o->t0_ns <= i->recovered_ns && o->recovered_ns > i->recovered_ns)
            return false;
        if (o->t0_ns > i->recovered_ns && o->t0_ns < until_ns)
            return false;
    }
    return true;
}

/* 0 or more: so long after it had been healed the job made a step. -1: there is nothing to say. */
static int64_t took_ns(const struct trial *t, struct finding *f, const struct incident *i,
                       const struct course *c) {
    int64_t bound = t->scenario->limits.stall_ns, healed = i->recovered_ns;
    int64_t step = first_after(&c->steps, healed);
    int64_t until = step ? step : c->end_ns ? c->end_ns : healed + bound;
    if (!is_last(c, t->incidents, i, until) || (!step && until - healed < bound))
        return -1; /* it ended before that could be seen */
    if (step && step - healed <= bound)
        return step - healed;
    const char *expected = finding_expected(
        f, "a step within limits.stall, %g s, after %s was healed", (double)bound / 1e9, i->id);
    if (step)
        finding_fail(f, broken, expected, "the next step came after %.1f s",
                     (double)(step - healed) / 1e9);
    else
        finding_fail(f, broken, expected, "no step came any more");
    finding_prove(f, i->force_seq);
    return -1;
}

/* Some worker's step, after what the harness has stamped itself. */
static const char *off_text(char *out, size_t size, const struct trial *t) {
    int64_t most_ns = 0;
    for (size_t i = 0; i < t->rounds->workers_n; i++) {
        int64_t one_ns = t->rounds->workers[i]->bound_ns[WORKER_STEPS];
        most_ns = one_ns > most_ns ? one_ns : most_ns;
    }
    return clocks_text(out, size, most_ns, false);
}

static bool hits_workers(const struct incident *i) {
    return i->targets_n && str_eq(i->targets[0].what, "worker");
}

static bool judge_healed(const struct trial *t, struct finding *f, const struct course *c) {
    int64_t longest = -1;
    const struct incident *slowest = NULL;
    for (size_t k = 0; k < t->incidents->n; k++) {
        const struct incident *i = t->incidents->v[k];
        if (check_by_torchrun(t->scenario) && !hits_workers(i))
            continue; /* it says nothing of nodes that were cut off or stood still */
        if (!i->in_force || !i->recovered || !agent_alive(c, i->recovered_ns))
            continue;
        int64_t ns = took_ns(t, f, i, c);
        if (f->status == FINDING_FAIL)
            return false;
        if (ns > longest) {
            longest = ns;
            slowest = i;
        }
    }
    char off[40];
    if (slowest)
        return finding_pass(f, "the next step %.0f ms%s after %s was healed", (double)longest / 1e6,
                            off_text(off, sizeof(off), t), slowest->id);
    return finding_skip(f, "nothing was healed while the job ran");
}

static bool judge(const struct trial *t, struct finding *f) {
    struct course c;
    struct moments ends;
    c.agents = check_agents(t, &c.agents_n);
    moments_init(&c.steps, t->arena, t->history, is_step);
    moments_init(&ends, t->arena, t->history, is_end);
    spans_of_incidents(&c.broken, t->arena, t->incidents);
    c.end_ns = first_after(&ends, 0);
    return first_after(&c.steps, 0) ? judge_healed(t, f, &c)
                                    : finding_skip(f, "the job sends no steps");
}

const struct check check_heal = {
    .name = "heal",
    .summary = "the job goes on once a lasting fault has been undone",
    .text = "When the last thing that was broken is whole again while the job runs, a step must "
            "come within limits.stall. A job that ends before that is judged by its outcome.",
    .example = "rankquake run scenarios/network/partition-and-heal.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(JOB),
    .needs_events = NEEDS_STEPS,
    .judge = judge,
};
