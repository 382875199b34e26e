/* Compares the lines of an agent's log. */
#include "harness/judge/checks/own_round.h"
#include "harness/judge/checks/claims/said.h"
#include "harness/judge/checks/claims/said_line.h"
#include "harness/judge/checks/lags.h"

#include "base/str.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

/* Two ends that are as close as that have no order. */
static const int64_t MOMENT_NS = 20000000;

struct claimed {
    const struct record *r;
    struct said_line l;
};

struct claims {
    struct said_trial *s;
    struct finding *f;
    struct claimed *v;
    size_t n;
};

#define WRONG(c, w, expected, ...)                                                                 \
    (finding_prove((c)->f, (r) ? (r)->seq : 0, (w) ? (w)->start_seq : 0, (w) ? (w)->exit_seq : 0), \
     finding_fail((c)->f, SAID_BROKEN, expected, __VA_ARGS__))

/* ---- rounds ---- */

static bool agent_began_between(const struct claims *c, const char *node, int64_t from_ns,
                                int64_t to_ns) {
    for (size_t i = 0; i < c->s->agents_n; i++)
        if (str_eq(c->s->agents[i].node, node) && c->s->agents[i].start_ns > from_ns &&
            c->s->agents[i].start_ns < to_ns)
            return true;
    return false;
}

/* The worker that the same agent had in its round before; NULL: it had none. */
static const struct worker *former(const struct claims *c, const struct worker *w) {
    const struct rounds *rs = c->s->t->rounds;
    const struct worker *last = NULL;
    for (size_t i = 0; i < rs->workers_n && rs->workers[i] != w; i++)
        if (str_eq(rs->workers[i]->node, w->node) && rs->workers[i]->round != w->round &&
            rs->workers[i]->start_ns < w->start_ns)
            last = rs->workers[i];
    return last && !agent_began_between(c, w->node, last->start_ns, w->start_ns) ? last : NULL;
}

/* Whether a restart is why, or a change of members: by the count that workers were told. NULL: nobody
 * knows, as workers of a round in between may have ended before they were seen. */
static const char *cause_of(const struct claims *c, const struct worker *w) {
    const struct worker *before = former(c, w);
    if (own_round(w) == 1)
        return "start";
    if (!before || own_round(before) != own_round(w) - 1)
        return NULL;
    return w->restart_count > before->restart_count ? "failure" : "membership";
}

static bool is_cause(const char *said, const char *seen) {
    if (!seen)
        return !str_eq(said, "start");
    return str_eq(said, seen) || (str_eq(seen, "membership") && str_eq(said, "elsewhere"));
}

static bool is_struck(const struct claims *c, const char *node) {
    const struct incidents *is = c->s->t->incidents;
    for (size_t i = 0; i < is->n; i++)
        if (check_names_node(is->v[i], node))
            return true;
    return false;
}

/* INT64_MAX: it is more than can be told. */
static int64_t said_ms(const struct said_line *l) {
    int64_t ms;
    bool is_more = __builtin_add_overflow(l->stop_ms, l->rendezvous_ms, &ms) ||
                   __builtin_add_overflow(ms, l->start_ms, &ms);
    return is_more ? INT64_MAX : ms;
}

/* What the launcher says that a round took cannot be longer than from its agent's start to the end of
 * the round's last worker. NULL: it is not, or that is not known. */
static const char *time_differs(const struct claims *c, const struct said_line *l,
                                const struct worker *w) {
    const struct trial *t = c->s->t;
    const struct round *now = t->rounds->v[w->round - 1];
    int64_t end_ns = round_ended_ns(now), began_ns = 0;
    for (size_t i = 0; i < c->s->agents_n; i++)
        if (str_eq(c->s->agents[i].node, w->node) && c->s->agents[i].start_ns < w->start_ns)
            began_ns = c->s->agents[i].start_ns;
    if (!began_ns || !end_ns || is_struck(c, w->node))
        return NULL;
    int64_t most_ms =
        (end_ns - began_ns + lags_most_ns(t->lags, began_ns, end_ns)) / 1000000 + 1000;
    return said_ms(l) > most_ms ? arena_printf(t->arena,
                                               "says that it took %" PRId64
                                               " ms to begin, of %" PRId64 " ms that there were",
                                               said_ms(l), most_ms)
                                : NULL;
}

static const char *round_differs(const struct claims *c, const struct said_line *l,
                                 const struct worker *w) {
    const struct {
        const char *what;
        int64_t said, seen;
    } numbers[] = {{"world", l->world, w->world_size},
                   {"nodes", l->nodes, w->group_world_size},
                   {"restarts used", l->restarts, w->restart_count},
                   {"restarts", l->restarts_max, w->max_restarts},
                   {"its own group rank 0", 0, w->group_rank}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (numbers[i].said != numbers[i].seen && numbers[i].seen >= 0)
            return arena_printf(c->s->t->arena,
                                "says %s %" PRId64 ", and workers were told %" PRId64,
                                numbers[i].what, numbers[i].said, numbers[i].seen);
    if (!is_cause(l->cause, cause_of(c, w)))
        return arena_printf(c->s->t->arena, "says that the cause is %s, and it is %s", l->cause,
                            cause_of(c, w) ? cause_of(c, w) : "none that begins a job");
    return time_differs(c, l, w);
}

/* A store that comes back empty, or another attempt, may have a round of that number once more. */
static bool judge_round(struct claims *c, const struct record *r, const struct said_line *l) {
    const struct rounds *rs = c->s->t->rounds;
    const struct worker *last = NULL;
    const char *why = NULL;
    for (size_t i = 0; i < rs->workers_n; i++) {
        const struct worker *w = rs->workers[i];
        if (!str_eq(w->node, r->node) || w->local_rank != 0 || own_round(w) != l->round)
            continue;
        why = round_differs(c, l, w);
        if (!why || w->spawned)
            return true;
        last = w;
    }
    return !last || WRONG(c, last, "what was seen of that round",
                          "the agent of %s %s, of its round %" PRId64, r->node, why, l->round);
}

/* ---- failures ---- */

static bool ended_as_said(const struct worker *w, const struct said_line *l) {
    char name[24] = "";
    const char *abbreviated = w->exit_signal ? sigabbrev_np(w->exit_signal) : NULL;
    str_copy(name, sizeof(name), abbreviated ? abbreviated : "");
    if (l->signal_name)
        return w->exit_signal && (str_eq(l->signal_name, name) || !*name);
    if (l->signal >= 0)
        return w->exit_signal == l->signal;
    return l->code < 0 || (!w->exit_signal && w->exit_code == l->code);
}

/* Another of that round and node that had failed before; NULL: none, as far as that can be told. */
static const struct worker *failed_before(const struct claims *c, const struct worker *w) {
    const struct trial *t = c->s->t;
    const struct round *round = t->rounds->v[w->round - 1];
    for (size_t i = 0; i < round->n; i++) {
        const struct worker *o = round->workers[i];
        if (o != w && str_eq(o->node, w->node) && worker_failed(o) &&
            o->exit_ns + MOMENT_NS < w->exit_ns &&
            w->exit_ns - o->exit_ns > lags_most_ns(t->lags, o->exit_ns, w->exit_ns))
            return o;
    }
    return NULL;
}

static const char *failure_differs(const struct claims *c, const struct said_line *l,
                                   const struct worker *w) {
    const struct worker *before;
    if (w->exit_ns && !w->exit_known)
        return NULL;
    if (!worker_failed(w))
        return w->exit_ns ? "which ended 0" : "which was never seen to end";
    if (!ended_as_said(w, l))
        return arena_printf(c->s->t->arena, "which ended otherwise: code %d, signal %d",
                            w->exit_code, w->exit_signal);
    before = l->kind == SAID_WORKER ? failed_before(c, w) : NULL;
    return before ? arena_printf(c->s->t->arena, "and rank %d there had failed %.0f ms before it",
                                 before->rank, (double)(w->exit_ns - before->exit_ns) / 1e6)
                  : NULL;
}

static bool is_meant(const struct said_line *l, const struct worker *w, const char *node) {
    return str_eq(w->node, node) && (l->rank < 0 || w->rank == l->rank) &&
           (l->local_rank < 0 || w->local_rank == l->local_rank) &&
           (!l->round || own_round(w) == l->round);
}

static bool judge_failure(struct claims *c, const struct record *r, const struct said_line *l) {
    const struct rounds *rs = c->s->t->rounds;
    const char *node = l->node ? own_node(c->s->t->history, l->node) : r->node, *why = NULL;
    const struct worker *last = NULL;
    for (size_t i = 0; node && i < rs->workers_n; i++) {
        const struct worker *w = rs->workers[i];
        if (!is_meant(l, w, node))
            continue;
        why = failure_differs(c, l, w);
        if (!why || w->spawned)
            return true;
        last = w;
    }
    if (!last && (!node || l->kind == SAID_WORKER))
        return true; /* its workers may have ended before anybody saw them */
    return WRONG(c, last, "a worker that failed so",
                 "the agent of %s calls rank %" PRId64 " (local rank %" PRId64 ") on %s failed%s%s",
                 r->node, l->rank, l->local_rank, node, last ? ", " : "; there was none",
                 last ? why : "");
}

/* Its own agent and the job's summary tell of one process. */
static bool judge_pid(struct claims *c, const struct record *r, const struct said_line *l) {
    const char *node = l->node ? own_node(c->s->t->history, l->node) : NULL;
    for (size_t i = 0; node && i < c->n; i++) {
        const struct claimed *o = &c->v[i];
        if (o->l.kind != SAID_WORKER || !str_eq(o->r->node, node) || o->l.round != l->round ||
            o->l.pid == l->pid)
            continue;
        const struct worker *none = NULL;
        finding_prove(c->f, o->r->seq);
        return WRONG(c, none, "one process",
                     "the agent of %s names process %" PRId64 " of %s as the first failure, which "
                     "calls it process %" PRId64,
                     r->node, l->pid, node, o->l.pid);
    }
    return true;
}

/* ---- the outcome ---- */

/* A template may start one launcher after another. */
static bool judge_outcome(struct claims *c, const struct record *r, const struct said_line *l) {
    const struct rounds *rs = c->s->t->rounds;
    const struct worker *w = NULL;
    bool ended_so = check_template(c->s->t);
    int code = l->succeeded ? 0 : 1;
    for (size_t i = 0; i < c->s->agents_n; i++)
        ended_so |= str_eq(c->s->agents[i].node, r->node) &&
                    (!c->s->agents[i].exit_ns || c->s->agents[i].code == code);
    if (!ended_so)
        return WRONG(c, w, "the outcome that its exit code is",
                     "the agent of %s says that the job %s, and did not end %d", r->node,
                     l->succeeded ? "succeeded" : "failed", code);
    for (size_t i = 0; i < rs->workers_n; i++)
        if (str_eq(rs->workers[i]->node, r->node))
            w = rs->workers[i];
    if (w && !check_template(c->s->t) && !str_eq(w->run_id, l->run_id))
        return WRONG(c, w, "the run's id",
                     "the agent of %s calls the run %s, and its workers were told %s", r->node,
                     l->run_id, w->run_id);
    if (w && l->restarts_max >= 0 && l->restarts_max != w->max_restarts)
        return WRONG(c, w, "the restarts that there are",
                     "the agent of %s says that %" PRId64 " restarts are used up; there were %d",
                     r->node, l->restarts_max, w->max_restarts);
    return l->rank < 0 || judge_failure(c, r, l);
}

/* ---- lines that are owed: where any was heard, or somebody has put them all elsewhere ---- */

static bool has_line(const struct claims *c, enum said_kind kind, const char *node, int64_t round,
                     int64_t local_rank) {
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].l.kind == kind && str_eq(c->v[i].r->node, node) && c->v[i].l.round == round &&
            (local_rank < 0 || c->v[i].l.local_rank < 0 || c->v[i].l.local_rank == local_rank))
            return true;
    return false;
}

static const struct worker *first_of_group(const struct round *round) {
    for (size_t i = 0; i < round->n; i++)
        if (round->workers[i]->group_rank == 0 && round->workers[i]->local_rank == 0)
            return round->workers[i];
    return NULL;
}

static bool judge_owed_round(struct claims *c, const struct round *round) {
    const struct record *r = NULL;
    const struct worker *w = round->complete ? first_of_group(round) : NULL;
    if (!c->n || !w || w->spawned || own_round(w) < 1 || !said_whole_agent(c->s, w->node) ||
        (own_round(w) == 1 && w->group_world_size == 1) ||
        has_line(c, SAID_ROUND, w->node, own_round(w), -1))
        return true;
    return WRONG(c, w, "a line of each round",
                 "the agent of %s, of group rank 0, has told nothing of its round %" PRId64,
                 w->node, own_round(w));
}

/* The worker by whose own failure the round has ended, and nothing else that happened. */
static const struct worker *struck_alone(const struct claims *c, const struct round *round) {
    const struct worker *w = round_failed(round);
    const struct incident *in = incidents_ended(c->s->t->incidents, round);
    bool alone = w && in && !in->beside && in->in_force && incident_hits_worker(in, w) &&
                 w->exit_known && own_round(w) > 0;
    return alone && !w->spawned && !failed_before(c, w) ? w : NULL;
}

/* Another was struck as well, or failed by itself, maybe for want of the first: its agent may have been
 * quicker, and have ended the others before theirs heard of any. */
static bool others_failed(const struct claims *c, const struct round *round,
                          const struct worker *w) {
    const struct incident *in = incidents_ended(c->s->t->incidents, round);
    for (size_t i = 0; i < round->n; i++) {
        const struct worker *o = round->workers[i];
        if (o == w || !worker_ended_badly(o))
            continue;
        if (incident_hits_worker(in, o) || (o->exit_signal != SIGTERM && o->exit_signal != SIGKILL))
            return true;
    }
    return false;
}

/* By that agent, or by any where it may have been any. */
static bool was_told(const struct claims *c, const struct round *round, const struct worker *w) {
    bool others = others_failed(c, round, w);
    if (has_line(c, SAID_WORKER, w->node, own_round(w), w->local_rank))
        return true;
    for (size_t i = 0; others && i < round->n; i++)
        if (!said_whole_agent(c->s, round->workers[i]->node) ||
            has_line(c, SAID_WORKER, round->workers[i]->node, own_round(w), -1))
            return true;
    return false;
}

static bool judge_owed_failure(struct claims *c, const struct round *round) {
    const struct record *r = NULL;
    const struct worker *w = struck_alone(c, round);
    if (!c->n || !w || !said_whole_agent(c->s, w->node) || was_told(c, round, w))
        return true;
    return WRONG(c, w, "a line of the worker that failed",
                 "the agent of %s has told nothing of rank %d, which failed in its round %" PRId64,
                 w->node, w->rank, own_round(w));
}

/* ---- the whole ---- */

static void collect(struct claims *c) {
    const struct trial *t = c->s->t;
    /* Workers are told none then. */
    bool hidden = job_launcher_told(&t->scenario->job, "--virtual-local-rank");
    size_t most = 0;
    history_each(r, t->history) most += r->source == SOURCE_LAUNCHER && record_is(r, "said");
    c->v = arena_array(t->arena, struct claimed, most + 1);
    history_each(r, t->history) {
        if (r->source != SOURCE_LAUNCHER || !record_is(r, "said"))
            continue;
        struct claimed *one = &c->v[c->n];
        one->r = r;
        said_line_read(t->arena, record_text(r, "line"), &one->l);
        one->l.local_rank = hidden ? -1 : one->l.local_rank;
        c->n += one->l.kind != SAID_NOTHING;
    }
}

static bool judge_one(struct claims *c, const struct claimed *one) {
    const struct said_line *l = &one->l;
    const struct record *r = one->r;
    const struct worker *none = NULL;
    if (l->differs)
        return WRONG(c, none, "what its text says", "the agent of %s says %s beside \"%.150s\"",
                     r->node, l->differs, record_text(r, "line"));
    switch (l->kind) {
    case SAID_ROUND:
        return judge_round(c, r, l);
    case SAID_WORKER:
        return judge_failure(c, r, l);
    case SAID_FIRST:
        return judge_failure(c, r, l) && judge_pid(c, r, l);
    case SAID_OUTCOME:
        return judge_outcome(c, r, l);
    case SAID_NOTHING:
        break;
    }
    return true;
}

bool said_lines(struct said_trial *s, struct finding *f) {
    struct claims c = {.s = s, .f = f};
    collect(&c);
    for (size_t i = 0; i < c.n; i++)
        if (!judge_one(&c, &c.v[i]))
            return false;
    for (size_t i = 0; i < s->t->rounds->n; i++)
        if (!judge_owed_round(&c, s->t->rounds->v[i]) ||
            !judge_owed_failure(&c, s->t->rounds->v[i]))
            return false;
    s->lines += (int64_t)c.n;
    return true;
}
