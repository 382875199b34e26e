/* Measures the time between a worker's SIGTERM and the SIGKILL that ended it. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lags.h"
#include "harness/judge/checks/sorted.h"
#include "harness/judge/checks/spans.h"

#include "base/str.h"

#include <signal.h>
#include <stdlib.h>

static const char broken[] =
    "Grace: a worker that is told to end has its time, before it is ended by force.";

static const int64_t S = 1000000000;

/* What is asked for each worker that was killed, found once. */
struct blows {
    const struct trial *t;
    const struct incident **v;        /* all in force, as they fired */
    const struct incident **at_nodes; /* those of them that may end a worker with its node */
    struct grace_hit *hits;           /* those that may end a worker alone, by that */
    size_t n, at_nodes_n, hits_n;
    struct moments agent_ends;
};

struct grace_hit {
    const struct worker *worker;
    const struct incident *by;
};

/* The first thing that could have made the launcher stop this worker. */
struct grace_cause {
    int64_t t_ns, seq;
    bool failure;
};

static void take(struct grace_cause *c, int64_t t_ns, int64_t seq, bool failure) {
    c->failure |= failure;
    if (c->t_ns && c->t_ns <= t_ns)
        return;
    c->t_ns = t_ns;
    c->seq = seq;
}

static int64_t fired_ns_of(const void *thing) {
    return (*(const struct incident *const *)thing)->fired_ns;
}

/* At that time or later; NULL: none. */
static const struct incident *first_fired(const struct blows *b, int64_t from_ns) {
    size_t at = lower_bound(b->v, b->n, sizeof(*b->v), fired_ns_of, from_ns);
    return at < b->n ? b->v[at] : NULL;
}

static int64_t index_of(const void *thing) {
    return (int64_t)((const struct grace_hit *)thing)->worker->index;
}

static const struct grace_hit *first_hit(const struct blows *b, const struct worker *w) {
    return &b->hits[lower_bound(b->hits, b->hits_n, sizeof(*b->hits), index_of, (int64_t)w->index)];
}

static bool was_struck_itself(const struct blows *b, const struct worker *w) {
    for (const struct grace_hit *h = first_hit(b, w); h < b->hits + b->hits_n && h->worker == w;
         h++)
        if (h->by->fired_ns <= w->exit_ns)
            return true;
    return false;
}

static bool was_struck_with_node(const struct blows *b, const struct worker *w) {
    for (size_t i = 0; i < b->at_nodes_n && b->at_nodes[i]->fired_ns <= w->exit_ns; i++)
        if (check_names_node(b->at_nodes[i], w->node))
            return true;
    return false;
}

/* A fault on it, its agent, its node or the store: then it may have been fenced, or have died of
 * the fault itself. One that was told to leave has its time. */
static bool was_struck(const struct blows *b, const struct worker *w) {
    return was_struck_itself(b, w) || was_struck_with_node(b, w);
}

/* Its agent was gone: what is left of its workers is ended at once, for nobody could wait for them.
 */
static bool outlived_its_agent(const struct blows *b, const struct worker *w) {
    const struct record *r;
    for (size_t i = 0; (r = moments_next(&b->agent_ends, &i, w->start_ns, w->exit_ns));)
        if (str_eq(r->node, w->node))
            return true;
    return false;
}

/* It ended as it was told to, behind something else that could be the reason for that. */
static bool obeyed(const struct blows *b, const struct round *r, const struct worker *w) {
    const struct incident *in = first_fired(b, r->first_start_ns);
    bool by_term = w->exit_signal == SIGTERM || w->exit_code == 128 + SIGTERM;
    return by_term && in && in->fired_ns <= w->exit_ns && !was_struck_itself(b, w);
}

/* The end of a worker is a failure, which shortens the time of the others, only where nothing says
 * that it fell with its node or its agent, or did as it was told: nobody counts that as one. */
static bool has_failed(const struct blows *b, const struct round *r, const struct worker *w) {
    return worker_ended_badly(w) && !was_struck_with_node(b, w) && !outlived_its_agent(b, w) &&
           !obeyed(b, r, w);
}

static struct grace_cause cause_of(const struct blows *b, const struct round *r,
                                   const struct worker *w) {
    struct grace_cause c = {0};
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *o = r->workers[i];
        if (o == w || !worker_ended_badly(o) || o->exit_ns > w->exit_ns)
            continue;
        take(&c, o->exit_ns, o->exit_seq, has_failed(b, r, o));
    }
    const struct incident *in = first_fired(b, r->first_start_ns);
    if (in && in->fired_ns <= w->exit_ns)
        take(&c, in->fired_ns, in->force_seq, false);
    return c;
}

static bool is_agent_end(const struct record *r) {
    return r->source == SOURCE_KERNEL && record_is(r, "agent-exit");
}

static int by_firing(const void *a, const void *b) {
    const struct incident *x = *(const struct incident *const *)a;
    const struct incident *y = *(const struct incident *const *)b;
    int order = (x->fired_ns > y->fired_ns) - (x->fired_ns < y->fired_ns);
    return order ? order : (x->force_seq > y->force_seq) - (x->force_seq < y->force_seq);
}

static int by_worker(const void *a, const void *b) {
    size_t x = ((const struct grace_hit *)a)->worker->index,
           y = ((const struct grace_hit *)b)->worker->index;
    return (x > y) - (x < y);
}

static void note_targets(struct blows *b, const struct incident *in) {
    bool beyond = false, alone = !in->recovered && !incident_has(in, EFFECT_STOPS_WORKER);
    for (size_t k = 0; k < in->targets_n; k++) {
        beyond |= !str_eq(in->targets[k].what, "worker");
        if (in->targets[k].worker && alone)
            b->hits[b->hits_n++] = (struct grace_hit){in->targets[k].worker, in};
    }
    if (beyond)
        b->at_nodes[b->at_nodes_n++] = in;
}

static void blows_init(struct blows *b, const struct trial *t) {
    const struct incidents *is = t->incidents;
    size_t targets = 0;
    for (size_t i = 0; i < is->n; i++)
        targets += is->v[i]->targets_n;
    *b = (struct blows){.t = t,
                        .v = arena_array(t->arena, const struct incident *, is->n),
                        .at_nodes = arena_array(t->arena, const struct incident *, is->n),
                        .hits = arena_array(t->arena, struct grace_hit, targets)};
    for (size_t i = 0; i < is->n; i++)
        if (is->v[i]->in_force)
            b->v[b->n++] = is->v[i];
    qsort(b->v, b->n, sizeof(*b->v), by_firing);
    for (size_t i = 0; i < b->n; i++)
        if (!incident_has(b->v[i], EFFECT_ASKS_TO_LEAVE) || incident_has(b->v[i], EFFECT_ENDS_NODE))
            note_targets(b, b->v[i]);
    qsort(b->hits, b->hits_n, sizeof(*b->hits), by_worker);
    moments_init(&b->agent_ends, t->arena, t->history, is_agent_end);
}

/* The file timer of torchelastic: a launcher that watches it ends a worker at once when a timer of
 * that worker's own is over. */
static bool watches_timers(const struct scenario *s) {
    for (size_t i = 0; i < s->job.env_n; i++)
        if (str_eq(s->job.env[i].key, "TORCHELASTIC_ENABLE_FILE_TIMER"))
            return str_eq(s->job.env[i].value, "1");
    return false;
}

/* Nobody was told to end then: it is the first of its round. */
static bool may_be_timed_out(const struct trial *t, const struct round *r, const struct worker *w) {
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *o = r->workers[i];
        if (o != w && worker_ended_badly(o) && o->exit_ns <= w->exit_ns)
            return false;
    }
    return watches_timers(t->scenario);
}

struct grace_tally {
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
static bool judge_worker(const struct blows *b, struct finding *f, const struct round *r,
                         const struct worker *w, struct grace_tally *tally) {
    const struct trial *t = b->t;
    const struct grace_cause c = cause_of(b, r, w);
    int64_t grace = check_grace_ns(t->scenario, c.failure), had = w->exit_ns - c.t_ns;
    const struct record *fenced;
    if (grace < 0 || was_struck(b, w) || outlived_its_agent(b, w) || may_be_timed_out(t, r, w))
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
    } else if (check_may_be_fenced(t, r, w, w->exit_ns)) {
        finding_unknown(f, broken,
                        "rank %d on %s of round %d died on signal 9 when this host was short of "
                        "time: its agent may have been silent for so long that it was fenced",
                        w->rank, w->node, w->round);
    } else if (is_fault_under_way(t)) {
        finding_unknown(f, broken,
                        "rank %d on %s of round %d died on signal 9, and the history stops before "
                        "it says whom a fault struck",
                        w->rank, w->node, w->round);
    } else if (c.t_ns) {
        const char *expected = finding_expected(f, "%lld s between the signal to end and SIGKILL",
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

/* False when one was not given its time, with the finding filled. */
static bool judge_killed(const struct trial *t, struct finding *f, int64_t end_ns,
                         struct grace_tally *tally) {
    struct blows b;
    bool well = true;
    blows_init(&b, t);
    for (size_t i = 0; i < t->rounds->workers_n && well; i++) {
        const struct worker *w = t->rounds->workers[i];
        if (w->exit_ns && w->exit_known && w->exit_signal == SIGKILL && w->exit_ns < end_ns)
            well = judge_worker(&b, f, t->rounds->v[w->round - 1], w, tally);
    }
    return well;
}

static bool judge(const struct trial *t, struct finding *f) {
    struct grace_tally tally = {0};
    const struct record *end = history_newest(t->history, SOURCE_HARNESS, "job-end");
    int64_t end_ns = end ? end->t_ns : INT64_MAX; /* from then on the harness itself ends it all */
    if (!check_sees_rounds(t, f))
        return false;
    if (history_is_simulated(t->history))
        return finding_skip(f, "simulated workers have times of their own");
    if (!judge_killed(t, f, end_ns, &tally))
        return false;
    if (tally.killed)
        return finding_pass(f, "%d worker%s ended by force, none before %.1f s", tally.killed,
                            tally.killed == 1 ? " was" : "s were", (double)tally.shortest_ns / 1e9);
    return finding_pass(f, "no worker ended on SIGKILL, except by a fault");
}

const struct check check_grace = {
    .name = "grace",
    .summary = "a worker that is told to end has its time before SIGKILL",
    .text =
        "A worker that ends on SIGKILL, and that no fault has struck, must have had the launcher's "
        "grace since the first thing that could have made it stop: rankrun gives 2 s after a "
        "failure and 30 s after a change of members or a signal, torchrun 30 s. Emergency "
        "checkpoints live on it. Where the launcher watches timers of its workers "
        "(TORCHELASTIC_ENABLE_FILE_TIMER=1), the first of a round to end may have been ended by "
        "one. A launcher that has been cut off from its store, or whose agent "
        "died, ends its workers at once; where only its own word says so, or the host was so short "
        "of time that an agent may not have been run, the answer is unknown.",
    .example = "rankquake run scenarios/restart/worker-hangs.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(WIRE) | SOURCES(LAUNCHER),
    .not_applicable = idle,
    .judge = judge,
};
