/* Measures how long the other workers of a round outlived the first that failed. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lags.h"

#include "base/str.h"
#include "harness/history/clocks.h"

#include <signal.h>

static const char broken[] =
    "Survivors: when a worker has failed, the others of its round are ended at once.";

static const int64_t GRACE_NS = 30000000000;
/* For the word to reach all agents, and for the kernel to end what was killed. */
static const int64_t TOLD_NS = 3000000000;

static bool reaches_beyond_workers(const struct incident *in) {
    for (size_t k = 0; k < in->targets_n; k++)
        if (!str_eq(in->targets[k].what, "worker"))
            return true;
    return in->targets_n == 0;
}

/* What else had happened by then, so that the launcher may be busy with it, or first find out by
 * silence that somebody is gone: a fault reached further than workers, or agents came and went. */
static bool was_disturbed(const struct trial *t, const struct agent_moves *agents,
                          const struct worker *failed, int64_t to_ns) {
    for (size_t i = 0; i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        if (in->fired && in->fired_ns <= to_ns && reaches_beyond_workers(in) &&
            (!in->recovered || in->recovered_ns >= failed->start_ns))
            return true;
    }
    for (size_t i = 0; i < agents->n; i++) {
        const struct agent_move *m = &agents->v[i];
        if (m->t_ns >= failed->start_ns && m->t_ns <= (m->came ? to_ns : failed->exit_ns))
            return true;
    }
    return false;
}

/* One that ended on SIGTERM was told to, perhaps, and by a change of members. */
static int64_t own_ns(const struct scenario *s, const struct worker *failed) {
    return check_grace_ns(s, failed->exit_signal != SIGTERM);
}

/* A launcher's own time for its workers, and where more is wrong than a worker's failure, or what
 * is promised is not known, the scenario's for an end. */
static int64_t bound_ns(const struct trial *t, const struct agent_moves *agents,
                        const struct worker *failed, int64_t to_ns) {
    int64_t own = own_ns(t->scenario, failed), set = t->scenario->limits.grace_ns;
    int64_t most = (set ? set : GRACE_NS) + (own < 0 ? GRACE_NS : own);
    if (own < 0 || own + TOLD_NS > most || history_is_simulated(t->history) ||
        was_disturbed(t, agents, failed, to_ns))
        return most;
    return own + TOLD_NS;
}

/* Of a node that is cut off, stands still or is gone nothing is asked in this time: the next round
 * must wait for it (one_round). */
static bool out_of_reach(const struct trial *t, const struct worker *w, int64_t from_ns,
                         int64_t to_ns) {
    for (size_t i = 0; i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        if (in->in_force && in->t0_ns <= to_ns &&
            (!in->recovered || in->recovered_ns >= from_ns ||
             incident_has(in, EFFECTS_TAKE_AGENT)) &&
            check_names_node(in, w->node))
            return true;
    }
    return false;
}

static int64_t last_seen_ns(const struct history *h) {
    const struct record *end = history_newest(h, SOURCE_HARNESS, "job-end");
    return end ? end->t_ns : h->n ? h->records[h->n - 1]->t_ns : 0;
}

struct survivors_tally {
    int rounds;
    int64_t longest_ns, off_ns; /* off: by so much that may be more or less */
    int64_t last_seen_ns;       /* of the run */
    struct agent_moves agents;
};

static bool judge_worker(const struct trial *t, struct finding *f, const struct worker *failed,
                         const struct worker *w, struct survivors_tally *tally) {
    int64_t from = w->start_ns > failed->exit_ns ? w->start_ns : failed->exit_ns;
    int64_t until = w->exit_ns ? w->exit_ns : tally->last_seen_ns;
    int64_t bound = bound_ns(t, &tally->agents, failed, until);
    int64_t took = until > from ? until - from : 0;
    bool in_time = took <= bound;
    if (in_time && (!w->exit_ns || took <= tally->longest_ns))
        return true;
    if (out_of_reach(t, w, from, from + bound))
        return true;
    if (in_time) {
        tally->longest_ns = took;
        tally->off_ns = check_off_ns(w, failed, WORKER_ENDS);
        return true;
    }
    const char *expected = finding_expected(
        f, "every worker of the round ended within %g s of the first failure", (double)bound / 1e9);
    finding_prove(f, failed->exit_seq, w->exit_seq ? w->exit_seq : w->start_seq);
    if (!w->exit_ns)
        return finding_unknown(
            f, broken,
            "rank %d on %s was never seen to end after rank %d on %s had failed in "
            "round %d",
            w->rank, w->node, failed->rank, failed->node, w->round);
    if (took - bound < lags_most_ns(t->lags, from, until))
        return finding_unknown(f, broken, "%.1f s, but the harness itself was late by as much",
                               (double)took / 1e9);
    char off[40];
    return finding_fail(
        f, broken, expected,
        "rank %d on %s of round %d lived on for %.1f s%s after rank %d on %s had failed", w->rank,
        w->node, w->round, (double)took / 1e9,
        check_off_text(off, sizeof(off), w, failed, WORKER_ENDS), failed->rank, failed->node);
}

static bool judge_round(const struct trial *t, struct finding *f, const struct round *r,
                        struct survivors_tally *tally) {
    const struct worker *failed = round_failed(r);
    if (!failed || failed->exit_ns >= tally->last_seen_ns)
        return true; /* from then on the harness itself ends it all */
    tally->rounds++;
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        /* torchrun's other agents go on until they are asked to meet again. */
        bool asked = !t->scenario->torchrun_semantics || str_eq(w->node, failed->node);
        if (w != failed && asked && !judge_worker(t, f, failed, w, tally))
            return false;
    }
    return true;
}

static bool judge(const struct trial *t, struct finding *f) {
    struct survivors_tally tally = {.last_seen_ns = last_seen_ns(t->history),
                                    .agents = check_agent_moves(t)};
    if (!check_sees_rounds(t, f))
        return false;
    for (size_t i = 0; i < t->rounds->n; i++)
        if (!judge_round(t, f, t->rounds->v[i], &tally))
            return false;
    char off[40];
    if (tally.rounds)
        return finding_pass(f, "all ended within %.0f ms%s of the first, in %d round%s",
                            (double)tally.longest_ns / 1e6,
                            clocks_text(off, sizeof(off), tally.off_ns, false), tally.rounds,
                            tally.rounds == 1 ? "" : "s");
    return finding_skip(f, "no worker failed");
}

const struct check check_survivors = {
    .name = "survivors",
    .summary = "when a worker has failed, the others of its round do not linger",
    .text =
        "From the first worker of a round that ends otherwise than with 0, all others must "
        "have ended within the launcher's own time for its workers and 3 s: they wait in a "
        "collective for somebody who is gone, and pay for it. Where a fault is about a node, an "
        "agent or the network, where agents came or went, or where the launcher's time is not "
        "known, limits.grace takes the place of the 3 s. Under semantics: torchrun "
        "those of the same node. Of a node that was cut off or stood still nothing is asked.",
    .example = "rankquake run scenarios/restart/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(WIRE),
    .judge = judge,
};
