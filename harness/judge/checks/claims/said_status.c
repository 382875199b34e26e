/* Compares the answers of `rankrun status`, which probes of the scenario ask for. */
#include "harness/judge/checks/own_round.h"
#include "harness/judge/checks/claims/said.h"
#include "harness/judge/checks/claims/status_answer.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct status_asked {
    const struct trial *t;
    struct finding *f;
    const struct record *r;
    int64_t from_ns, to_ns; /* when it was asked, and answered */
    struct status_answer a;
    const struct round *round; /* that it tells of; NULL: none that was seen */
    int64_t heard, led,
        due; /* answers about a job that ran: of so many, those that tell the next beat of
                              * each member, and those that name a coordinator */
};

#define WRONG(q, w, expected, ...)                                                                 \
    (finding_prove((q)->f, (q)->r->seq, (w) ? (w)->start_seq : 0),                                 \
     finding_fail((q)->f, SAID_BROKEN, expected, __VA_ARGS__))

static const struct worker *none;

static const struct worker *first_worker(const struct round *r, int64_t group_rank) {
    const struct worker *first = NULL;
    for (size_t i = 0; r && i < r->n; i++)
        if (r->workers[i]->group_rank == group_rank &&
            (!first || r->workers[i]->rank < first->rank))
            first = r->workers[i];
    return first;
}

/* The newest complete round of that number that had begun by then: another life of the job may have had
 * one before. */
static const struct round *find_round(const struct status_asked *q) {
    for (size_t i = q->t->rounds->n; i-- > 0;) {
        const struct round *r = q->t->rounds->v[i];
        if (r->complete && r->n && r->first_start_ns < q->to_ns &&
            own_round(r->workers[0]) == q->a.round)
            return r;
    }
    return NULL;
}

static bool store_was_struck(const struct trial *t) {
    for (size_t i = 0; i < t->incidents->n; i++)
        if (incident_hits_store(t->incidents->v[i]) || check_took_store(t, t->incidents->v[i]))
            return true;
    return false;
}

/* What had begun before it was asked is no news: the store tells of it or of what came after. */
static bool judge_age(const struct status_asked *q) {
    const struct rounds *rs = q->t->rounds;
    for (size_t i = rs->n; i-- > 0;) {
        const struct round *r = rs->v[i];
        if (!r->complete || r->last_start_ns >= q->from_ns)
            continue;
        int64_t own = own_round(r->workers[0]);
        if (own <= q->a.round || own < 0 || q->a.round < 0 || store_was_struck(q->t))
            return true;
        return WRONG(q, r->workers[0], "the newest round",
                     "the status tells of round %" PRId64 ", and %" PRId64 " had begun before",
                     q->a.round, own);
    }
    return true;
}

/* Nothing has happened from the round's beginning until it was answered. */
static bool is_quiet(const struct status_asked *q) {
    const struct trial *t = q->t;
    if (!q->round || q->round->last_start_ns >= q->from_ns)
        return false;
    for (size_t i = 0; i < q->round->n; i++)
        if (q->round->workers[i]->exit_ns && q->round->workers[i]->exit_ns <= q->to_ns)
            return false;
    for (size_t i = 0; i < t->incidents->n; i++)
        if (t->incidents->v[i]->fired && t->incidents->v[i]->fired_ns <= q->to_ns &&
            (!t->incidents->v[i]->round || t->incidents->v[i]->round->number >= q->round->number))
            return false;
    history_each(r, t->history) {
        if (r->source == SOURCE_KERNEL &&
            (record_is(r, "agent-start") || record_is(r, "agent-exit")) &&
            r->t_ns > q->round->first_start_ns && r->t_ns <= q->to_ns)
            return false;
    }
    return true;
}

/* ---- the job ---- */

static bool judge_numbers(const struct status_asked *q, const struct worker *w,
                          const struct said_number *v) {
    for (; v->what; v++)
        if (v->said != v->seen && v->said >= 0 && v->seen >= 0)
            return WRONG(q, w, finding_expected(q->f, "%s %" PRId64, v->what, v->seen),
                         "the status tells of %s %" PRId64, v->what, v->said);
    return true;
}

static int64_t spares_of(const struct status_answer *a) {
    int64_t n = 0;
    for (size_t i = 0; i < a->members_n; i++)
        n += a->members[i].spare;
    return n;
}

static bool judge_job(const struct status_asked *q, bool quiet) {
    const struct status_answer *a = &q->a;
    const struct worker *w = first_worker(q->round, 0);
    const struct job_spec *job = &q->t->scenario->job;
    bool by_node = str_eq(job_launcher_told(job, "--restart-count"), "node");
    bool ours = str_eq(job->launcher, "rankrun");
    const struct said_number numbers[] = {
        {"nodes at least", a->nodes_min, ours ? job->min_nodes : -1},
        {"nodes at most", a->nodes_max, ours ? job->max_nodes : -1},
        {"restarts", a->restarts_max, w->max_restarts},
        {"restarts left", a->restarts_left,
         a->restarts_max >= 0 ? a->restarts_max - a->restarts : -1},
        {"nodes that wait", a->waiting, a->nodes_min >= 0 ? spares_of(a) : -1},
        {"values that are not read", a->not_read, 0},
        {"nodes", a->nodes, w->group_world_size},
        {"world", quiet ? a->world : -1, w->world_size},
        {"restarts used", quiet && !by_node ? a->restarts : -1, w->restart_count},
        {0}};
    if (!a->run_id || !str_eq(a->run_id, w->run_id))
        return WRONG(q, w, w->run_id, "the status tells of the run %.80s",
                     a->run_id ? a->run_id : "without an id");
    return judge_numbers(q, w, numbers);
}

static bool judge_quiet_job(const struct status_asked *q) {
    const struct status_answer *a = &q->a;
    const struct worker *w = first_worker(q->round, 0);
    int64_t port = -1;
    str_to_i64(w->master_port, 1, 65535, &port);
    if (!str_eq(a->phase, "running") || a->outcome)
        return WRONG(q, w, "running", "the status tells of phase %.20s%s%.20s", a->phase,
                     a->outcome ? ": " : "", a->outcome ? a->outcome : "");
    if (a->master_addr && !str_eq(a->master_addr, w->master_addr))
        return WRONG(q, w, w->master_addr, "the status tells of the master address %.80s",
                     a->master_addr);
    const struct said_number numbers[] = {{"master port", a->master_port, port}, {0}};
    if (a->coordinator && !own_node(q->t->history, a->coordinator))
        return WRONG(q, w, "a node", "the status calls %.80s the coordinator", a->coordinator);
    return judge_numbers(q, w, numbers);
}

static bool judge_failure(const struct status_asked *q) {
    const struct status_answer *a = &q->a;
    const char *node = a->failure_node ? own_node(q->t->history, a->failure_node) : NULL;
    if (!a->failure || !node || a->failure_rank < 0)
        return true;
    for (size_t i = 0; i < q->t->rounds->workers_n; i++) {
        const struct worker *w = q->t->rounds->workers[i];
        char how[32] = "";
        const char *name = w->exit_signal ? sigabbrev_np(w->exit_signal) : NULL;
        if (w->spawned)
            return true;
        if (w->rank != a->failure_rank || !str_eq(w->node, node) || !worker_ended_badly(w) ||
            w->exit_ns > q->to_ns)
            continue;
        if (name)
            snprintf(how, sizeof(how), "SIG%s", name);
        else
            snprintf(how, sizeof(how), "exit code %d", w->exit_code);
        if (!w->exit_known || !a->failure_status || str_starts(a->failure_status, how))
            return true;
    }
    return WRONG(q, none, "a worker that failed so",
                 "the status calls rank %" PRId64
                 " on %s (%.40s) the first failure; there was none",
                 a->failure_rank, node, a->failure_status ? a->failure_status : "");
}

/* ---- members ---- */

static bool had_ended_well(const struct status_asked *q, const char *node) {
    for (size_t i = 0; i < q->round->n; i++) {
        const struct worker *w = q->round->workers[i];
        if (str_eq(w->node, node) && (!w->exit_ns || w->exit_ns > q->to_ns || worker_failed(w)))
            return false;
    }
    return true;
}

static bool had_failed(const struct status_asked *q, const char *node) {
    for (size_t i = 0; i < q->round->n; i++) {
        const struct worker *w = q->round->workers[i];
        if (str_eq(w->node, node) && worker_ended_badly(w) && w->exit_ns <= q->to_ns)
            return true;
    }
    return false;
}

static bool anything_happened(const struct status_asked *q) {
    for (size_t i = 0; i < q->t->incidents->n; i++)
        if (q->t->incidents->v[i]->fired && q->t->incidents->v[i]->fired_ns <= q->to_ns)
            return true;
    return false;
}

static bool judge_state(const struct status_asked *q, const struct status_member *m,
                        const char *node, bool quiet) {
    const struct worker *w = first_worker(q->round, m->group_rank);
    if (quiet && (!m->spare || !anything_happened(q)) &&
        !str_eq(m->state, m->spare ? "spare" : "running"))
        return WRONG(q, w, m->spare ? "spare" : "running", "the status calls %s %.20s", node,
                     m->state);
    if (str_eq(m->state, "done") && !had_ended_well(q, node))
        return WRONG(q, w, "workers that have ended 0", "the status calls %s done", node);
    if (str_eq(m->state, "failed") && !had_failed(q, node))
        return WRONG(q, w, "a worker that has failed", "the status calls %s failed", node);
    if ((str_eq(m->state, "lost") || str_eq(m->state, "left")) && !anything_happened(q))
        return WRONG(q, w, "a node of which nothing is wrong", "the status calls %s %.20s", node,
                     m->state);
    return true;
}

/* Of the round that the answer tells of. A spare has no place in it. */
static bool judge_place(const struct status_asked *q, const struct status_member *m,
                        const char *node) {
    const struct worker *w = first_worker(q->round, m->group_rank);
    if (!w)
        return WRONG(q, w, "a group rank of the round",
                     "the status gives %s the group rank %" PRId64, node ? node : "a node",
                     m->group_rank);
    if (node && !str_eq(w->node, node))
        return WRONG(q, w, w->node, "the status gives the group rank %" PRId64 " to %s",
                     m->group_rank, node);
    if (m->role && !str_eq(m->role, w->role))
        return WRONG(q, w, w->role, "the status gives %s the role %.60s", w->node, m->role);
    const struct said_number numbers[] = {
        {"first rank", m->first_rank, w->rank},
        {"last rank", m->last_rank, w->rank + w->local_world_size - 1},
        {"workers of a node", m->slots, w->local_world_size},
        {0}};
    return judge_numbers(q, w, numbers);
}

static bool judge_member(const struct status_asked *q, const struct status_member *m, bool quiet) {
    const char *node = m->node ? own_node(q->t->history, m->node) : NULL;
    if (m->node && !node)
        return WRONG(q, none, "a node of the cluster", "the status tells of the node %.80s",
                     m->node);
    if (m->addr && m->node && !own_node(q->t->history, m->addr) && !str_eq(m->addr, "127.0.0.1"))
        return WRONG(q, none, "an address of the node", "the status gives %s the address %.80s",
                     node, m->addr);
    if (m->beat_ms > (q->to_ns - q->from_ns) / 1000000)
        return WRONG(q, none, "a beat while it was listening",
                     "the status tells of a beat after %" PRId64 " ms, and took %" PRId64,
                     m->beat_ms, (q->to_ns - q->from_ns) / 1000000);
    if (!m->spare && m->group_rank >= 0 && !judge_place(q, m, node))
        return false;
    return !node || !m->state || judge_state(q, m, node, quiet);
}

static int64_t planned(const struct status_answer *a) {
    return (int64_t)a->members_n - spares_of(a);
}

static bool judge_members(const struct status_asked *q, bool quiet) {
    for (size_t i = 0; i < q->a.members_n; i++)
        if (!judge_member(q, &q->a.members[i], quiet))
            return false;
    return !quiet || planned(&q->a) == q->a.nodes ||
           WRONG(q, none, finding_expected(q->f, "%" PRId64 " members", q->a.nodes),
                 "the status names %" PRId64 " members of the round", planned(&q->a));
}

/* ---- the whole ---- */

/* Over torchelastic's rendezvous nobody coordinates, and beats are not told. */
static void count_quiet(struct status_asked *q) {
    size_t heard = 0;
    for (size_t i = 0; i < q->a.members_n; i++)
        heard += q->a.members[i].beat_ms >= 0;
    if (q->a.nodes_min < 0)
        return;
    q->due++;
    q->heard += heard == q->a.members_n;
    q->led += q->a.coordinator != NULL;
}

static bool judge_answer(struct status_asked *q) {
    if (!judge_age(q) || !judge_failure(q))
        return false;
    q->round = q->a.round >= 0 ? find_round(q) : NULL;
    if (!q->round || q->round->workers[0]->spawned || !first_worker(q->round, 0))
        return true;
    bool quiet = is_quiet(q);
    if (quiet)
        count_quiet(q);
    return judge_job(q, quiet) && (!quiet || judge_quiet_job(q)) && judge_members(q, quiet);
}

/* A host that is busy may beat late, or lead anew; where that was never heard, nobody listened. */
static bool judge_all(const struct status_asked *q) {
    enum { ENOUGH = 8 };
    if (q->due >= ENOUGH && !q->led)
        return WRONG(q, none, "who coordinates",
                     "none of %" PRId64 " answers about a job that ran names a coordinator",
                     q->due);
    return q->due < ENOUGH || q->heard ||
           WRONG(q, none, "a beat of each member",
                 "none of %" PRId64 " answers about a job that ran has heard all members", q->due);
}

bool said_status(struct said_trial *s, struct finding *f) {
    struct status_asked q = {.t = s->t, .f = f};
    history_each(r, s->t->history) {
        const char *text = record_text(r, "status");
        if (r->source != SOURCE_USER || !record_is(r, "answer") || !*text)
            continue;
        q.r = r;
        q.to_ns = r->t_ns;
        q.from_ns = r->t_ns - record_i64(r, "took_ns", 0);
        if (!status_answer_read(s->t->arena, text, &q.a)) {
            return WRONG(&q, none, "an answer", "the status cannot be read: %.100s", text);
        }
        if (!judge_answer(&q))
            return false;
        s->answers++;
    }
    return !s->answers || judge_all(&q);
}
