/* Compares the phases of each recovery with the launcher's own start in the same run. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lags.h"

#include "base/str.h"
#include "harness/history/clocks.h"
#include "faults/effect.h"

#include <stdio.h>

static const char broken[] =
    "Pace: to start a round again takes about as long as to start the first one.";

/* So often as long as at the start, and so much more: a launcher's own phases, and those that are
 * the job's. Loading is not compared, for at the start there is nothing to load. */
static const struct pace_bound {
    enum phase phase;
    int times;
    int64_t more_ns;
} bounds[] = {
    {PHASE_RENDEZVOUS, 2, 1000000000},
    {PHASE_START, 2, 1000000000},
    {PHASE_INIT, 3, 2000000000},
    {PHASE_FIRST_STEP, 3, 2000000000},
};
enum { BOUNDS_N = sizeof(bounds) / sizeof(*bounds) };

/* ---- the launcher's own start ---- */

static int64_t last_of(int64_t so_far, int64_t ns) {
    return so_far < 0 || !ns ? -1 : ns > so_far ? ns : so_far;
}

/* When the last agent of its nodes began; -1: that is not known, or one came behind a worker. */
static int64_t agents_began_ns(const struct trial *t, const struct round *r) {
    int64_t last = -1;
    history_each(a, t->history) {
        if (a->source == SOURCE_KERNEL && record_is(a, "agent-start") &&
            a->t_ns <= r->last_start_ns && round_on_node(r, a->node))
            last = a->t_ns;
    }
    return last <= r->first_start_ns ? last : -1;
}

static int64_t between(int64_t from, int64_t to) {
    return from > 0 && to >= from ? to - from : -1;
}

/* -1: not seen. */
static void own_start(const struct trial *t, const struct round *r, int64_t ret[PHASE_N]) {
    int64_t ready = 0, resume = 0, step = 0;
    for (size_t i = 0; i < r->n; i++) {
        ready = last_of(ready, r->workers[i]->ready_ns);
        resume = last_of(resume, r->workers[i]->resume_ns);
        step = last_of(step, r->workers[i]->first_step_ns);
    }
    ret[PHASE_RENDEZVOUS] = between(agents_began_ns(t, r), r->first_start_ns);
    ret[PHASE_START] = between(r->first_start_ns, r->last_start_ns);
    ret[PHASE_INIT] = between(r->last_start_ns, ready);
    ret[PHASE_FIRST_STEP] = between(resume, step);
}

/* ---- a recovery ---- */

/* Something was done to more than workers, or goes on: then it may take what it takes. */
static bool disturbs(const struct incident *in) {
    bool beyond = in->targets_n == 0 || incident_has(in, EFFECT_LASTING);
    for (size_t k = 0; k < in->targets_n; k++)
        beyond |= !str_eq(in->targets[k].what, "worker");
    return beyond;
}

static bool is_comparable(const struct trial *t, const struct incident *i,
                          const struct agent_moves *agents) {
    int64_t end = i->t0_ns + i->recover_ns;
    if (!i->ended_round || !i->next || i->recover_ns < 0)
        return false;
    for (size_t k = 0; k < t->incidents->n; k++) {
        const struct incident *in = t->incidents->v[k];
        if (in->fired && in->fired_ns <= end && disturbs(in))
            return false;
    }
    for (size_t k = 0; k < agents->n; k++)
        if (agents->v[k].t_ns >= i->t0_ns && agents->v[k].t_ns <= end)
            return false;
    return i->next->world_size == t->rounds->v[0]->world_size;
}

static bool judge_phase(const struct trial *t, struct finding *f, const struct incident *i,
                        const struct pace_bound *b, int64_t own_ns) {
    int64_t took = i->phase_ns[b->phase], bound = b->times * own_ns + b->more_ns;
    if (took <= bound)
        return true;
    int64_t lag = lags_most_ns(t->lags, i->t0_ns, i->t0_ns + i->recover_ns);
    const char *phase = phase_name(b->phase);
    char off[40];
    finding_prove(f, i->force_seq);
    if (lag > bound / 10)
        return finding_skip(f, "%s of %s took %.0f ms, but the harness itself was late by %.0f ms",
                            phase, i->id, (double)took / 1e6, (double)lag / 1e6);
    const char *expected = finding_expected(
        f,
        "%s within %.0f ms: %d times the %.0f ms of the first round, and %.0f "
        "ms",
        phase, (double)bound / 1e6, b->times, (double)own_ns / 1e6, (double)b->more_ns / 1e6);
    return finding_fail(f, broken, expected, "%s of %s took %.0f ms%s", phase, i->id,
                        (double)took / 1e6,
                        clocks_text(off, sizeof(off), i->phase_bound_ns[b->phase], false));
}

static bool judge_incident(const struct trial *t, struct finding *f, const struct incident *i,
                           const int64_t own[PHASE_N], int *judged) {
    for (int k = 0; k < BOUNDS_N; k++) {
        enum phase p = bounds[k].phase;
        if (own[p] < 0 || i->phase_ns[p] < 0)
            continue;
        if (!judge_phase(t, f, i, &bounds[k], own[p]))
            return false;
        ++*judged;
    }
    return true;
}

/* What others promise is their own: torchrun waits as its settings say, a template as it likes. */
static bool judge(const struct trial *t, struct finding *f) {
    const struct round *first = t->rounds->n ? t->rounds->v[0] : NULL;
    int64_t own[PHASE_N];
    int judged = 0, recoveries = 0;
    if (!check_sees_rounds(t, f))
        return false;
    if (check_by_torchrun(t->scenario) || check_template(t) || history_is_simulated(t->history))
        return finding_skip(f, "how long this launcher may take to start a round is not known");
    if (!first->complete)
        return finding_skip(f, "the first round never became complete");
    own_start(t, first, own);
    struct agent_moves agents = check_agent_moves(t);
    for (size_t i = 0; i < t->incidents->n; i++) {
        int before = judged;
        if (is_comparable(t, t->incidents->v[i], &agents) &&
            !judge_incident(t, f, t->incidents->v[i], own, &judged))
            return false;
        recoveries += judged > before;
    }
    if (!judged)
        return finding_skip(f, "no worker alone failed, so there is nothing to compare");
    if (own[PHASE_RENDEZVOUS] < 0 || own[PHASE_INIT] < 0 || own[PHASE_FIRST_STEP] < 0)
        return finding_skip(f, "no phase was much longer than in the first round, as far as it was "
                               "seen; the job does not tell the others");
    return finding_pass(f, "%d phase%s of %d recover%s, none much longer than in the first round",
                        judged, judged == 1 ? "" : "s", recoveries, recoveries == 1 ? "y" : "ies");
}

const struct check check_pace = {
    .name = "pace",
    .summary = "no phase of a recovery takes much longer than the launcher's own start",
    .text =
        "Where workers alone failed, and nothing else was done to the job by then, each phase "
        "of the recovery is held against the same phase of the first round: rendezvous and "
        "start may take twice as long and 1 s more, init and first step, which are the job's, "
        "three times as long and 2 s more. Not judged where the harness itself was late by more "
        "than a tenth of that. To load a checkpoint has nothing to be compared with.",
    .example = "rankquake run scenarios/restart/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(JOB),
    .judge = judge,
};
