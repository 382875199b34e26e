/* Compares torchelastic's events, which agents print when the job has ended. */
#include "harness/judge/checks/own_round.h"
#include "harness/judge/checks/claims/said.h"

#include "base/str.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static const char prefix[] = "torchelastic.worker.status.";

struct said_event {
    const struct record *r;
    const struct json *all, *metadata, *inner; /* inner: the text of JSON that stands in metadata */
    const char *state;
    bool worker;
};

static bool read_event(struct arena *a, const struct record *r, struct said_event *ret) {
    const char *line = record_text(r, "line");
    const struct json *all =
        r->source == SOURCE_LAUNCHER && record_is(r, "said") && str_starts(line, "{\"name\"")
            ? json_parse(a, line, strlen(line), NULL)
            : NULL;
    if (!all)
        return false;
    *ret = (struct said_event){.r = r, .all = all, .metadata = json_get(all, "metadata")};
    const char *inner = json_get_string(ret->metadata, "metadata", "");
    ret->inner = json_parse(a, inner, strlen(inner), NULL);
    ret->state = json_get_string(ret->metadata, "state", "");
    ret->worker = str_eq(json_get_string(all, "source", ""), "WORKER");
    return true;
}

#define WRONG(e, w, expected, ...)                                                                 \
    (finding_prove(f, (e)->r->seq, (w) ? (w)->start_seq : 0, (w) ? (w)->exit_seq : 0),             \
     finding_fail(f, SAID_BROKEN, expected, __VA_ARGS__))

/* The newest of that place; local_rank -1: of the node. */
static const struct worker *newest(const struct rounds *rs, const char *node, int64_t local_rank) {
    for (size_t i = rs->workers_n; i-- > 0;)
        if (str_eq(rs->workers[i]->node, node) &&
            (local_rank < 0 || rs->workers[i]->local_rank == local_rank))
            return rs->workers[i];
    return NULL;
}

static int64_t only(const struct json *list) {
    return list && list->type == JSON_ARRAY && list->length == 1 ? json_i64(list->first, -1) : -1;
}

/* ---- what both kinds say ---- */

static const char *backend_of(const struct scenario *s) {
    const char *said = s->job.rdzv_backend;
    if (!str_eq(s->job.launcher, "rankrun"))
        return NULL;
    if (said)
        return str_eq(said, "c10d") ? "embedded" : said;
    return s->cluster.store == STORE_ETCD || s->cluster.store == STORE_ETCD_3 ? "etcd-v3"
                                                                              : "embedded";
}

static bool judge_names(const struct trial *t, struct finding *f, const struct said_event *e,
                        const struct worker *w) {
    const struct json *m = e->metadata;
    const char *name = json_get_string(e->all, "name", ""), *backend = backend_of(t->scenario);
    const char *entry = json_get_string(e->inner, "entry_point", "");
    if (!str_starts(name, prefix) || !str_eq(name + sizeof(prefix) - 1, e->state))
        return WRONG(e, w, "a name that tells the state",
                     "an event of %s is called %.60s, and its state is %.20s", e->r->node, name,
                     e->state);
    if (!e->worker && !str_eq(json_get_string(e->all, "source", ""), "AGENT"))
        return WRONG(e, w, "WORKER or AGENT", "an event of %s is of %.40s", e->r->node,
                     json_get_string(e->all, "source", "nobody"));
    if (!str_eq(json_get_string(m, "run_id", ""), w->run_id))
        return WRONG(e, w, w->run_id, "an event of %s calls the run %.80s", e->r->node,
                     json_get_string(m, "run_id", ""));
    if (!str_eq(json_get_string(m, "role", ""), w->role))
        return WRONG(e, w, w->role, "an event of %s calls the role %.80s", e->r->node,
                     json_get_string(m, "role", ""));
    if (backend && !str_eq(json_get_string(m, "rdzv_backend", ""), backend))
        return WRONG(e, w, backend, "an event of %s calls the backend %.40s", e->r->node,
                     json_get_string(m, "rdzv_backend", ""));
    if (str_eq(t->scenario->job.launcher, "rankrun") && !str_eq(entry, "rankprobe") &&
        !str_eq(entry, str_base(t->scenario->job.run[0])))
        return WRONG(e, w, "the program that was started", "an event of %s calls it %.80s",
                     e->r->node, entry);
    return true;
}

/* By the agent's own life, as the kernel knows it, and that of its workers. */
static bool judge_time(struct said_trial *s, struct finding *f, const struct said_event *e,
                       const struct worker *w) {
    const struct agent_end *a = said_whole_agent(s, e->r->node);
    int64_t said_s = json_get_i64(e->metadata, "total_run_time", -1);
    const struct rounds *rs = s->t->rounds;
    int64_t first_ns = w->start_ns;
    for (size_t i = 0; i < rs->workers_n; i++)
        if (str_eq(rs->workers[i]->node, w->node) && rs->workers[i]->start_ns < first_ns)
            first_ns = rs->workers[i]->start_ns;
    int64_t least_s = w->exit_ns ? (w->exit_ns - first_ns) / 1000000000 - 1 : 0;
    int64_t most_s = a ? (a->exit_ns - a->start_ns) / 1000000000 + 1 : INT64_MAX;
    if (!a || (said_s >= least_s && said_s <= most_s))
        return true;
    return WRONG(e, w, finding_expected(f, "from %" PRId64 " to %" PRId64 " s", least_s, most_s),
                 "an event of %s says that it ran for %" PRId64 " s", e->r->node, said_s);
}

static bool judge_host(const struct trial *t, struct finding *f, const struct said_event *e,
                       const struct worker *w) {
    const struct record *run = history_newest(t->history, SOURCE_HARNESS, "run");
    bool apart = run && str_eq(record_text(run, "isolation"), "namespaces");
    const char *name = json_get_string(e->metadata, "hostname", "");
    if (!apart || str_eq(name, e->r->node))
        return true;
    return WRONG(e, w, "the name of its host", "an event of %s calls the host %.80s", e->r->node,
                 name);
}

/* ---- numbers ---- */

static bool judge_numbers(struct finding *f, const struct said_event *e, const struct worker *w,
                          const struct said_number *v) {
    for (; v->what; v++)
        if (v->said != v->seen && v->seen >= 0)
            return WRONG(e, w, finding_expected(f, "%s %" PRId64, v->what, v->seen),
                         "an event of %s says %s %" PRId64, e->r->node, v->what, v->said);
    return true;
}

static bool judge_worker_numbers(struct finding *f, const struct said_event *e,
                                 const struct worker *w) {
    const struct json *m = e->metadata;
    const struct said_number numbers[] = {
        {"global rank", json_get_i64(m, "global_rank", -1), w->rank},
        {"group rank", json_get_i64(m, "group_rank", -1), w->group_rank},
        {"restarts", json_get_i64(m, "agent_restarts", -1), w->restart_count},
        {"a group world of", json_get_i64(e->inner, "group_world_size", -1), w->group_world_size},
        {"local rank", only(json_get(e->inner, "local_rank")), w->local_rank},
        {"role rank", only(json_get(e->inner, "role_rank")), w->role_rank},
        {"a role world of", only(json_get(e->inner, "role_world_size")), w->role_world_size},
        {0}};
    return judge_numbers(f, e, w, numbers);
}

static bool judge_agent_numbers(struct finding *f, const struct said_event *e,
                                const struct worker *w) {
    const struct json *m = e->metadata;
    const struct said_number numbers[] = {
        {"group rank", json_get_i64(m, "group_rank", -1), w->group_rank},
        {"restarts", json_get_i64(m, "agent_restarts", -1), w->restart_count},
        {"a group world of", json_get_i64(e->inner, "group_world_size", -1), w->group_world_size},
        {0}};
    if (json_get_i64(m, "global_rank", -1) >= 0 || *json_get_string(m, "worker_id", ""))
        return WRONG(e, w, "neither rank nor process",
                     "the event of the agent of %s names a worker", e->r->node);
    return judge_numbers(f, e, w, numbers);
}

/* ---- states ---- */

/* TERMINATED: it was ended with the others; who was, and who ended by itself in that moment, only the
 * agent knows. */
static bool judge_state(struct finding *f, const struct said_event *e, const struct worker *w) {
    bool failed = str_eq(e->state, "FAILED");
    const struct json *error = json_get(e->metadata, "raw_error");
    bool has_error = error && error->type != JSON_NULL;
    if (w->exit_ns && !w->exit_known)
        return true;
    if (str_eq(e->state, "SUCCEEDED") && !worker_ended_well(w))
        return WRONG(e, w, "a worker that ended 0", "an event of %s says that rank %d succeeded",
                     e->r->node, w->rank);
    if (failed && !worker_failed(w))
        return WRONG(e, w, "a worker that failed", "an event of %s says that rank %d failed",
                     e->r->node, w->rank);
    if (!failed && !str_eq(e->state, "SUCCEEDED") && !str_eq(e->state, "TERMINATED"))
        return WRONG(e, w, "SUCCEEDED, FAILED or TERMINATED", "an event of %s says %.40s",
                     e->r->node, e->state);
    if (failed != has_error)
        return WRONG(e, w, failed ? "its error" : "no error", "an event of %s says %s, %s error",
                     e->r->node, e->state, has_error ? "and an" : "without an");
    return true;
}

static bool judge_agent_state(struct said_trial *s, struct finding *f, const struct said_event *e,
                              const struct worker *w) {
    const struct agent_end *a = said_whole_agent(s, e->r->node);
    const struct json *error = json_get(e->metadata, "raw_error");
    bool succeeded = str_eq(e->state, "SUCCEEDED");
    if (!succeeded && !str_eq(e->state, "FAILED"))
        return WRONG(e, w, "SUCCEEDED or FAILED", "the event of the agent of %s says %.40s",
                     e->r->node, e->state);
    if (succeeded != (!error || error->type == JSON_NULL))
        return WRONG(e, w, "an error where it failed",
                     "the event of the agent of %s says %s, %s error", e->r->node, e->state,
                     succeeded ? "and an" : "without an");
    return !a || succeeded == (a->code == 0) ||
           WRONG(e, w, "the outcome that its exit code is",
                 "the event of the agent of %s says %s, and it ended %d", e->r->node, e->state,
                 a->code);
}

static bool judge_event(struct said_trial *s, struct finding *f, const struct said_event *e) {
    const struct trial *t = s->t;
    bool hidden = newest(t->rounds, e->r->node, 1) == NULL;
    int64_t local = e->worker ? only(json_get(e->inner, "local_rank")) : -1;
    const struct worker *w = newest(t->rounds, e->r->node, hidden && local > 0 ? -1 : local);
    if (!w && local >= 0)
        return WRONG(e, w, "a worker of its last round",
                     "an event of %s is of local rank %" PRId64 "; there was none", e->r->node,
                     local);
    if (!w || w->spawned)
        return true;
    if (!judge_names(t, f, e, w) || !judge_host(t, f, e, w) || !judge_time(s, f, e, w))
        return false;
    if (!e->worker)
        return judge_agent_numbers(f, e, w) && judge_agent_state(s, f, e, w);
    if (hidden && w->local_world_size > 1)
        return true;
    const struct round *last = rounds_last_complete(t->rounds);
    return judge_worker_numbers(f, e, w) &&
           (!last || last->number != w->round || judge_state(f, e, w));
}

/* ---- events that are owed ---- */

static bool judge_owed(struct said_trial *s, struct finding *f, const struct agent_end *a) {
    const struct trial *t = s->t;
    const struct worker *w = newest(t->rounds, a->node, -1);
    struct said_event e;
    int workers = 0, agents = 0;
    if (!w || w->spawned || said_whole_agent(s, a->node) != a)
        return true;
    history_each(r, t->history) {
        if (!str_eq(r->node, a->node) || !read_event(t->arena, r, &e))
            continue;
        *(e.worker ? &workers : &agents) += 1;
    }
    if (agents == 1 && workers == w->local_world_size)
        return true;
    finding_prove(f, a->seq, w->start_seq);
    return finding_fail(
        f, SAID_BROKEN,
        finding_expected(f, "one of the agent and %d of its workers", w->local_world_size),
        "%s has %d events of the agent and %d of its workers", a->node, agents, workers);
}

bool said_events(struct said_trial *s, struct finding *f) {
    struct said_event e;
    history_each(r, s->t->history) {
        if (!read_event(s->t->arena, r, &e))
            continue;
        if (!judge_event(s, f, &e))
            return false;
        s->lines++;
    }
    const char *handler = job_launcher_told(&s->t->scenario->job, "--event-log-handler");
    for (size_t i = 0; str_eq(handler, "console") && i < s->agents_n; i++)
        if (!judge_owed(s, f, &s->agents[i]))
            return false;
    return true;
}
