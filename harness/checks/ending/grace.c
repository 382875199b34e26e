#include "harness/checks/check.h"
#include "harness/checks/lags.h"

#include "agent/base/str.h"

#include <signal.h>
#include <stdio.h>

static const char broken[] =
    "Grace: a worker that is told to end has its time, before it is ended by force.";

static const int64_t S = 1000000000;

/* The first thing that could have made the launcher stop this worker. */
struct cause {
    int64_t t_ns, seq;
    bool failure;
};

static void take(struct cause *c, int64_t t_ns, int64_t seq, bool failure) {
    if (c->t_ns && c->t_ns <= t_ns)
        return;
    *c = (struct cause){t_ns, seq, c->failure || failure};
}

static struct cause cause_of(const struct trial *t, const struct round *r, const struct worker *w) {
    struct cause c = {0};
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *o = r->workers[i];
        if (o == w || !worker_ended_badly(o) || o->exit_ns > w->exit_ns)
            continue;
        c.failure = true;
        take(&c, o->exit_ns, o->exit_seq, true);
    }
    for (size_t i = 0; i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        if (in->in_force && in->fired_ns >= r->first_start_ns && in->fired_ns <= w->exit_ns)
            take(&c, in->fired_ns, in->force_seq, false);
    }
    return c;
}

/* A fault on it, its agent, its node or the store: then it may have been fenced, or have died of
 * the fault itself. One that was told to leave has its time. */
static bool was_struck(const struct trial *t, const struct worker *w) {
    for (size_t i = 0; i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        if (!in->in_force || in->fired_ns > w->exit_ns || str_eq(in->fault, "node-leave"))
            continue;
        if (check_names_node(in, w->node))
            return true;
        if (incident_hits_worker(in, w) && !in->recovered && !str_eq(in->fault, "worker-hang"))
            return true;
    }
    return false;
}

/* Its agent was gone: what is left of its workers is ended at once, for nobody could wait for them.
 */
static bool outlived_its_agent(const struct history *h, const struct worker *w) {
    history_each(r, h) {
        if (r->source == SOURCE_KERNEL && record_is(r, "agent-exit") && str_eq(r->node, w->node) &&
            r->t_ns >= w->start_ns && r->t_ns <= w->exit_ns)
            return true;
    }
    return false;
}

struct tally {
    int killed; /* by the launcher, after their time */
    int64_t shortest_ns;
};

/* A fault was under way when the history stops, so nobody knows whom it struck. */
static bool is_fault_under_way(const struct trial *t) {
    for (size_t i = 0; i < t->incidents->n; i++)
        if (!t->incidents->v[i]->in_force && !t->incidents->v[i]->failed)
            return history_is_cut(t->history);
    return false;
}

/* False when it is not all right, with the finding filled. */
static bool judge_worker(const struct trial *t, struct finding *f, const struct round *r,
                         const struct worker *w, struct tally *tally) {
    const struct cause c = cause_of(t, r, w);
    int64_t grace = check_grace_ns(t->scenario, c.failure), had = w->exit_ns - c.t_ns;
    const struct record *fenced;
    char expected[200];
    if (grace < 0 || was_struck(t, w) || outlived_its_agent(t->history, w))
        return true;
    if (c.t_ns && had + lags_most_ns(t->lags, c.t_ns, w->exit_ns) >= grace - grace / 10) {
        tally->killed++;
        tally->shortest_ns =
            tally->killed == 1 || had < tally->shortest_ns ? had : tally->shortest_ns;
        return true;
    }
    if ((fenced = check_said_fenced(t->history, w->node, w->start_ns, w->exit_ns))) {
        finding_unknown(f, broken,
                        "rank %d on %s of round %d was killed; its launcher says that it had lost "
                        "the store",
                        w->rank, w->node, w->round);
        finding_prove(f, fenced->seq);
    } else if (is_fault_under_way(t)) {
        finding_unknown(f, broken,
                        "rank %d on %s of round %d died on signal 9, and the history stops before "
                        "it says whom a fault struck",
                        w->rank, w->node, w->round);
    } else if (c.t_ns) {
        snprintf(expected, sizeof(expected), "%lld s between the signal to end and SIGKILL",
                 (long long)(grace / S));
        finding_fail(f, broken, expected,
                     "rank %d on %s of round %d died on signal 9 no more than %.0f ms after it "
                     "could have been told to end",
                     w->rank, w->node, w->round, (double)had / 1e6);
        finding_prove(f, c.seq);
    } else {
        finding_fail(f, broken, "nobody kills a worker of a round in which nothing has happened",
                     "rank %d on %s of round %d died on signal 9, the first of its round, and no "
                     "fault was aimed at it",
                     w->rank, w->node, w->round);
    }
    finding_prove(f, w->exit_seq);
    return false;
}

static const char *idle(const struct scenario *s) {
    return check_grace_ns(s, true) < 0 ? "the launcher's time for its workers is not known here"
                                       : NULL;
}

static void judge(const struct trial *t, struct finding *f) {
    struct tally tally = {0};
    const struct record *end = history_newest(t->history, SOURCE_HARNESS, "job-end");
    int64_t end_ns = end ? end->t_ns : INT64_MAX; /* from then on the harness itself ends it all */
    if (!check_sees_rounds(t, f))
        return;
    if (history_is_simulated(t->history)) {
        finding_skip(f, "simulated workers have times of their own");
        return;
    }
    for (size_t i = 0; i < t->rounds->workers_n; i++) {
        const struct worker *w = t->rounds->workers[i];
        if (!w->exit_ns || !w->exit_known || w->exit_signal != SIGKILL || w->exit_ns >= end_ns)
            continue;
        if (!judge_worker(t, f, t->rounds->v[w->round - 1], w, &tally))
            return;
    }
    if (tally.killed)
        finding_pass(f, "%d worker%s ended by force, none before %.1f s", tally.killed,
                     tally.killed == 1 ? " was" : "s were", (double)tally.shortest_ns / 1e9);
    else
        finding_pass(f, "no worker was ended by force but by a fault");
}

const struct check check_grace = {
    .name = "grace",
    .summary = "a worker that is told to end has its time before SIGKILL",
    .text =
        "A worker that ends on SIGKILL, and that no fault has struck, must have had the launcher's "
        "grace since the first thing that could have made it stop: rankrun gives 2 s after a "
        "failure and 30 s after a change of members or a signal, torchrun 30 s. Emergency "
        "checkpoints live on it. A launcher that has been cut off from its store, or whose agent "
        "died, ends its workers at once; where only its own word says so, the answer is unknown.",
    .example = "rankquake run scenarios/restart/worker-hangs.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(WIRE) | SOURCES(LAUNCHER),
    .idle = idle,
    .judge = judge,
};
