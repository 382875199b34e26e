#include "harness/history/rounds.h"

#include "base/str.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* ---- growing arrays in the arena ---- */

static void *grown(struct arena *a, void *old, size_t n, size_t *cap, size_t size) {
    if (n < *cap)
        return old;
    *cap = *cap ? *cap * 2 : 16;
    void *fresh = arena_alloc(a, *cap * size);
    if (n)
        memcpy(fresh, old, n * size);
    return fresh;
}

/* ---- a worker ---- */

static int env_int(const struct json *env, const char *name) {
    int64_t v;
    return str_to_i64(json_get_string(env, name, ""), 0, INT32_MAX, &v) ? (int)v : -1;
}

/* Launchers of other kinds have names of their own for it. */
static int env_first(const struct json *env, const char *const *names) {
    int v = -1;
    for (; v < 0 && *names; names++)
        v = env_int(env, *names);
    return v;
}

static const char *const ranks[] = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                    "PMI_RANK", "SLURM_PROCID",         NULL};
static const char *const world_sizes[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                          "SLURM_NTASKS", NULL};
static const char *const local_ranks[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                          "SLURM_LOCALID", NULL};

static struct worker *worker_new(struct rounds *rs, const struct record *r) {
    const struct json *env = record_get(r, "env");
    struct worker *w = arena_new(&rs->arena, struct worker);
    *w = (struct worker){
        .node = r->node,
        .pid = r->pid,
        .rank = env_first(env, ranks),
        .local_rank = env_first(env, local_ranks),
        .group_rank = env_int(env, "GROUP_RANK"),
        .role_rank = env_int(env, "ROLE_RANK"),
        .world_size = env_first(env, world_sizes),
        .local_world_size = env_int(env, "LOCAL_WORLD_SIZE"),
        .role_world_size = env_int(env, "ROLE_WORLD_SIZE"),
        .group_world_size = env_int(env, "GROUP_WORLD_SIZE"),
        .restart_count = env_int(env, "TORCHELASTIC_RESTART_COUNT"),
        .max_restarts = env_int(env, "TORCHELASTIC_MAX_RESTARTS"),
        .role = json_get_string(env, "ROLE_NAME", ""),
        .master_addr = json_get_string(env, "MASTER_ADDR", ""),
        .master_port = json_get_string(env, "MASTER_PORT", ""),
        .run_id = json_get_string(env, "TORCHELASTIC_RUN_ID", ""),
        .env = env,
        .start_ns = r->t_ns,
        .bound_ns = {[WORKER_STARTS] = r->bound_ns},
        .start_seq = r->seq,
        .resume_step = -1,
        .first_step = -1,
        .last_step = -1,
        .model = "",
    };
    return w;
}

/* ---- rounds ---- */

const struct worker *round_rank(const struct round *r, int rank) {
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->rank == rank)
            return r->workers[i];
    return NULL;
}

bool round_on_node(const struct round *r, const char *node) {
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->workers[i]->node, node))
            return true;
    return false;
}

bool worker_ended_well(const struct worker *w) {
    return w->exit_ns && w->exit_known && !w->exit_code && !w->exit_signal;
}

bool worker_ended_badly(const struct worker *w) {
    return w->exit_ns && !worker_ended_well(w);
}

bool worker_failed(const struct worker *w) {
    return w->exit_known && worker_ended_badly(w);
}

bool round_ended_well(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (!worker_ended_well(r->workers[i]))
            return false;
    return r->complete;
}

int64_t round_first_step(const struct round *r) {
    int64_t first = -1;
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        if (w->first_step_ns && (first < 0 || w->first_step < first))
            first = w->first_step;
    }
    return first;
}

int64_t round_ended_ns(const struct round *r) {
    int64_t last_ns = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (!r->workers[i]->exit_ns)
            return 0;
        if (r->workers[i]->exit_ns > last_ns)
            last_ns = r->workers[i]->exit_ns;
    }
    return last_ns;
}

size_t round_stepped(const struct round *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += r->workers[i]->first_step_ns != 0;
    return n;
}

const struct worker *round_failed(const struct round *r) {
    const struct worker *first = NULL;
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        if (worker_failed(w) && (!first || w->exit_ns < first->exit_ns))
            first = w;
    }
    return first;
}

int round_nodes(const struct round *r) {
    int n = 0;
    for (size_t i = 0; i < r->n; i++) {
        size_t k = 0;
        while (k < i && !str_eq(r->workers[k]->node, r->workers[i]->node))
            k++;
        n += k == i;
    }
    return n;
}

const struct worker *round_outlives(const struct round *earlier, const struct round *later) {
    for (size_t i = 0; i < earlier->n; i++) {
        const struct worker *w = earlier->workers[i];
        if (w->start_ns <= later->first_start_ns &&
            (!w->exit_ns || w->exit_ns > later->first_start_ns))
            return w;
    }
    return NULL;
}

static struct round *round_new(struct rounds *rs, const struct worker *w) {
    struct round *r = arena_new(&rs->arena, struct round);
    rs->v = grown(&rs->arena, rs->v, rs->n, &rs->cap, sizeof(*rs->v));
    rs->v[rs->n++] = r;
    *r = (struct round){
        .number = (int)rs->n, .world_size = w->world_size, .first_start_ns = w->start_ns};
    return r;
}

/* ---- which round a start belongs to ---- */

/* Rounds of one lineage that lack a rank, from the newest to that behind the last of them. */
struct gap {
    struct round *newest;
    const struct round *beyond;
    struct gap *below;
};

/* One rank of a lineage: which rounds lack it. */
struct rounds_seat {
    int rank;
    const struct round *seen; /* what is newer lacks it, too */
    struct gap *gaps;         /* the newest first */
};

/* All rounds of one identity: asked for by each start, so none is looked for among them. */
struct lineage {
    const struct worker *first;
    int restart_count; /* 0 where it is no part of the identity */
    struct round *newest;
    void *seats; /* of tsearch */
    void *stays; /* of tsearch */
};

/* One node of a lineage: where its newest worker is. */
struct stay {
    const char *node;
    const struct round *round;
    int64_t start_ns;
};

struct rounds_agent {
    const char *node;
    int64_t start_ns;
};

static int by_identity(const void *a, const void *b) {
    const struct lineage *x = a, *y = b;
    const struct worker *v = x->first, *w = y->first;
    int order = (x->restart_count > y->restart_count) - (x->restart_count < y->restart_count);
    if (!order)
        order = (v->world_size > w->world_size) - (v->world_size < w->world_size);
    if (!order)
        order = strcmp(v->master_port, w->master_port);
    if (!order)
        order = strcmp(v->master_addr, w->master_addr);
    return order ? order : strcmp(v->run_id, w->run_id);
}

static int by_rank(const void *a, const void *b) {
    const struct rounds_seat *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_stay(const void *a, const void *b) {
    return strcmp(((const struct stay *)a)->node, ((const struct stay *)b)->node);
}

static int by_agent(const void *a, const void *b) {
    return strcmp(((const struct rounds_agent *)a)->node, ((const struct rounds_agent *)b)->node);
}

/* What is in the tree and equals the key; else a copy of it, put there. */
static void *found_in(void **tree, const void *key, size_t size, struct arena *a,
                      int (*compare)(const void *, const void *)) {
    void **at = tfind(key, tree, compare);
    if (at)
        return *at;
    void *fresh = memcpy(arena_alloc(a, size), key, size);
    if (!tsearch(fresh, tree, compare))
        abort(); /* out of memory */
    return fresh;
}

static int64_t agent_start_ns(const struct rounds *rs, const char *node) {
    struct rounds_agent **a = tfind(&(struct rounds_agent){.node = node}, &rs->agents, by_agent);
    return a ? (*a)->start_ns : 0;
}

/* What has the same identity in all rounds may still be told apart: a node goes from round to round
 * and never back, and an agent has no part in what was before it. */
static bool may_join(const struct rounds *rs, const struct stay *stay, const struct round *r,
                     const struct worker *w) {
    int64_t agent_ns = agent_start_ns(rs, w->node);
    if (r->gone)
        return false;
    if (!*w->node)
        return true;
    if (stay->round && r->number < stay->round->number)
        return false;
    if (r == stay->round && stay->start_ns < agent_ns)
        return false;
    return (!r->heir || r->heir->first_start_ns > agent_ns) &&
           (rs->strict || r->first_start_ns > agent_ns);
}

static struct round *open_next(struct rounds *rs, struct lineage *l, const struct worker *w) {
    struct round *r = round_new(rs, w);
    r->elder = l->newest;
    if (r->elder)
        r->elder->heir = r;
    return l->newest = r;
}

static struct round *round_of(struct rounds *rs, const struct worker *w) {
    struct lineage identity = {.first = w, .restart_count = rs->strict ? w->restart_count : 0};
    struct lineage *l =
        found_in(&rs->lineages, &identity, sizeof(identity), &rs->arena, by_identity);
    struct rounds_seat place = {.rank = w->rank};
    struct rounds_seat *s = found_in(&l->seats, &place, sizeof(place), &rs->arena, by_rank);
    if (s->seen != l->newest) {
        struct gap *more = arena_new(&rs->arena, struct gap);
        *more = (struct gap){.newest = l->newest, .beyond = s->seen, .below = s->gaps};
        s->gaps = more;
    }
    struct stay here = {.node = w->node};
    struct stay *stay = found_in(&l->stays, &here, sizeof(here), &rs->arena, by_stay);
    struct round *r = s->gaps ? s->gaps->newest : NULL;
    if (!r || !may_join(rs, stay, r, w)) {
        r = open_next(rs, l, w);
    } else {
        s->gaps->newest = r->elder;
        if (s->gaps->newest == s->gaps->beyond)
            s->gaps = s->gaps->below;
    }
    s->seen = l->newest;
    *stay = (struct stay){.node = w->node, .round = r, .start_ns = w->start_ns};
    return r;
}

static void in_the_arena(void *entry) {
}

static void lineage_fini(void *entry) {
    tdestroy(((struct lineage *)entry)->seats, in_the_arena);
    tdestroy(((struct lineage *)entry)->stays, in_the_arena);
}

static int on_node(const struct round *r, const char *node) {
    int n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += str_eq(r->workers[i]->node, node);
    return n;
}

/* ---- the newest worker of a pid ---- */

/* Where it stands, or would: the table is never full. */
static struct worker **place_of(struct worker **table, size_t cap, int64_t pid) {
    size_t at = (size_t)((uint64_t)pid * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (cap - 1);
    while (table[at] && table[at]->pid != pid)
        at = (at + 1) & (cap - 1);
    return &table[at];
}

static void widen(struct rounds *rs) {
    size_t cap = rs->by_pid_cap ? rs->by_pid_cap * 2 : 64;
    struct worker **table = arena_array(&rs->arena, struct worker *, cap);
    for (size_t i = 0; i < rs->by_pid_cap; i++)
        if (rs->by_pid[i])
            *place_of(table, cap, rs->by_pid[i]->pid) = rs->by_pid[i];
    rs->by_pid = table;
    rs->by_pid_cap = cap;
}

static void remember(struct rounds *rs, struct worker *w) {
    if (2 * rs->by_pid_n >= rs->by_pid_cap)
        widen(rs);
    struct worker **place = place_of(rs->by_pid, rs->by_pid_cap, w->pid);
    rs->by_pid_n += !*place;
    w->former = *place;
    *place = w;
}

static struct worker *newest_of(const struct rounds *rs, int64_t pid) {
    return rs->by_pid_n ? *place_of(rs->by_pid, rs->by_pid_cap, pid) : NULL;
}

struct worker *rounds_worker(const struct rounds *rs, int64_t pid) {
    struct worker *w = newest_of(rs, pid);
    return w && !w->hosts ? w : NULL;
}

struct worker *rounds_worker_at(const struct rounds *rs, int64_t pid, int64_t t_ns) {
    struct worker *w = newest_of(rs, pid);
    while (w && w->start_ns > t_ns && w->former)
        w = w->former;
    return w && !w->hosts ? w : NULL;
}

/* ---- hosts ---- */

static bool may_host(const struct worker *w) {
    return w && (w->hosts || !(w->ready_ns || w->resume_ns || w->first_step_ns));
}

bool rounds_may_host(const struct rounds *rs, int64_t pid) {
    return may_host(newest_of(rs, pid));
}

bool rounds_hosts(const struct rounds *rs, int64_t pid, int rank, int world_size) {
    const struct worker *w = newest_of(rs, pid);
    return may_host(w) && (w->rank != rank || w->world_size != world_size);
}

/* Those behind it count one less. */
static void drop_round(struct rounds *rs, struct round *r) {
    r->gone = true;
    rs->n--;
    for (size_t i = (size_t)r->number - 1; i < rs->n; i++) {
        rs->v[i] = rs->v[i + 1];
        rs->v[i]->number = (int)i + 1;
        for (size_t k = 0; k < rs->v[i]->n; k++)
            rs->v[i]->workers[k]->round = (int)i + 1;
    }
}

static void leave_round(struct rounds *rs, const struct worker *w) {
    struct round *r = rs->v[w->round - 1];
    size_t at = 0;
    while (r->workers[at] != w)
        at++;
    r->n--;
    for (; at < r->n; at++)
        r->workers[at] = r->workers[at + 1];
    r->started--;
    r->complete = false;
    if (!r->n)
        drop_round(rs, r);
    else
        r->first_start_ns = r->workers[0]->start_ns;
}

static void make_host(struct rounds *rs, int64_t pid) {
    struct worker *w = newest_of(rs, pid);
    if (!may_host(w) || w->hosts)
        return;
    w->hosts = true;
    leave_round(rs, w);
    rs->workers_n--;
    for (size_t i = w->index; i < rs->workers_n; i++) {
        rs->workers[i] = rs->workers[i + 1];
        rs->workers[i]->index = i;
    }
}

/* What its host has and a rank does not change is inherited: it says nothing of the rank's place. */
static void forget_inherited(const struct rounds *rs, struct worker *w, int64_t below) {
    const struct worker *host = newest_of(rs, below);
    w->spawned = true;
    if (host && w->local_rank == host->local_rank &&
        w->local_world_size == host->local_world_size && w->world_size != host->world_size)
        w->local_rank = -1;
}

/* ---- a start ---- */

static void start(struct rounds *rs, const struct record *rec) {
    struct worker *w = worker_new(rs, rec);
    int64_t below = record_i64(rec, "below", 0);
    if (below) {
        make_host(rs, below);
        forget_inherited(rs, w, below);
    }
    struct round *r = round_of(rs, w);
    if (w->local_rank < 0 && w->rank >= 0)
        w->local_rank = on_node(r, w->node); /* not told: in the order of their starts */
    r->workers = grown(&rs->arena, r->workers, r->n, &r->cap, sizeof(*r->workers));
    r->workers[r->n++] = w;
    r->started++;
    w->round = r->number;
    rs->workers =
        grown(&rs->arena, rs->workers, rs->workers_n, &rs->workers_cap, sizeof(*rs->workers));
    w->index = rs->workers_n;
    rs->workers[rs->workers_n++] = w;
    remember(rs, w);
    if (!r->complete && r->started == r->world_size) {
        r->complete = true;
        r->last_start_ns = w->start_ns;
    }
}

/* ---- what happens to a worker afterwards ---- */

static void end(struct worker *w, const struct record *r) {
    if (w->exit_ns)
        return;
    w->exit_ns = r->t_ns;
    w->exit_seq = r->seq;
    w->bound_ns[WORKER_ENDS] = r->bound_ns;
    w->exit_code = (int)record_i64(r, "code", 0);
    w->exit_signal = (int)record_i64(r, "signal", 0);
    w->exit_known = record_get(r, "code") || record_get(r, "signal");
}

static void hear(struct worker *w, const struct record *r) {
    int64_t lost = record_i64(r, "lost", 0);
    if (lost > w->lost_events)
        w->lost_events = lost;
    if (record_is(r, "step")) {
        int64_t step = record_i64(r, "step", -1);
        if (!w->first_step_ns) {
            w->first_step_ns = r->t_ns;
            w->first_step = step;
            w->bound_ns[WORKER_STEPS] = r->bound_ns;
        }
        w->last_step_ns = r->t_ns;
        if (step > w->last_step)
            w->last_step = step;
    } else if (record_is(r, "ready") && !w->ready_ns) {
        w->ready_ns = r->t_ns;
        w->bound_ns[WORKER_READY] = r->bound_ns;
    } else if (record_is(r, "resume") && !w->resume_ns) {
        w->resume_ns = r->t_ns;
        w->bound_ns[WORKER_RESUMES] = r->bound_ns;
        w->resume_step = record_i64(r, "step", -1);
    } else if (record_is(r, "done")) {
        w->done_ns = r->t_ns;
        w->model = record_text(r, "model");
    }
}

void rounds_init(struct rounds *rs, bool strict) {
    *rs = (struct rounds){.strict = strict};
}

void rounds_feed(struct rounds *rs, const struct record *r) {
    if (r->source == SOURCE_PROBE && record_is(r, "worker-start")) {
        start(rs, r);
        return;
    }
    if (r->source == SOURCE_KERNEL && record_is(r, "agent-start")) {
        struct rounds_agent key = {.node = r->node};
        struct rounds_agent *a = found_in(&rs->agents, &key, sizeof(key), &rs->arena, by_agent);
        a->start_ns = r->t_ns;
        return;
    }
    if (!r->pid ||
        (r->source != SOURCE_PROBE && r->source != SOURCE_KERNEL && r->source != SOURCE_JOB))
        return;
    struct worker *w = rounds_worker(rs, r->pid);
    if (!w)
        return;
    rs->printed |= r->source == SOURCE_JOB && *record_text(r, "from") && !record_is(r, "log");
    if (r->source == SOURCE_JOB)
        hear(w, r);
    else if (r->source == SOURCE_KERNEL && record_is(r, "worker-exit"))
        end(w, r);
    else if (r->source == SOURCE_PROBE && record_is(r, "worker-exec") && !w->exec_ns)
        w->exec_ns = r->t_ns;
}

void rounds_load(struct rounds *rs, bool strict, const struct history *h) {
    rounds_init(rs, strict);
    history_each(r, h) rounds_feed(rs, r);
}

void rounds_fini(struct rounds *rs) {
    if (!rs)
        return;
    tdestroy(rs->lineages, lineage_fini);
    tdestroy(rs->agents, in_the_arena);
    arena_fini(&rs->arena);
    *rs = (struct rounds){0};
}

const struct round *rounds_last_complete(const struct rounds *rs) {
    for (size_t i = rs->n; i-- > 0;)
        if (rs->v[i]->complete)
            return rs->v[i];
    return NULL;
}
