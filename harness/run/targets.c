#include "harness/run/targets.h"

#include "base/str.h"
#include "faults/shape.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* Dead may not have been noted yet: the pidfd knows. */
bool targets_worker_lives(struct engine *e, const struct worker *w) {
    int pidfd = observer_worker_pidfd(e->observer, (pid_t)w->pid);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return pidfd >= 0 && poll(&p, 1, 0) == 0;
}

static int node_index(const char *name) {
    return name[0] == 'n' ? atoi(name + 1) : -1;
}

static int by_name(const void *a, const void *b) {
    const struct worker *x = *(const struct worker *const *)a;
    const struct worker *y = *(const struct worker *const *)b;
    int d = node_index(x->node) - node_index(y->node);
    return d ? d : x->local_rank - y->local_rank;
}

/* Of the newest complete round. A worker of it that is dead is replaced by that of the round which
 * begins, as soon as there is one; its node is still the node of that rank. */
static const struct worker *current_rank(struct engine *e, const struct target_spec *on) {
    const struct rounds *rs = e->rec.rounds;
    const struct round *r = rounds_last_complete(rs);
    const struct worker *w = r ? round_rank(r, on->rank) : NULL;
    if (w && (on->node_of_rank || targets_worker_lives(e, w)))
        return w;
    return rs->n ? round_rank(rs->v[rs->n - 1], on->rank) : NULL;
}

/* The node a target names, NULL when it names none. */
static const char *named_node(struct engine *e, const struct target_spec *on) {
    if (on->pick == PICK_NAMED)
        return on->node;
    const struct worker *w = on->pick == PICK_RANK ? current_rank(e, on) : NULL;
    return w ? w->node : NULL;
}

/* The rack a target names, from 1; 0: none. */
static int named_rack(struct engine *e, const struct target_spec *on) {
    const char *node = on->rack_of_rank ? named_node(e, on) : NULL;
    return node ? scenario_rack_of(e->plan->scenario, node) : on->rack;
}

static bool by_rack(const struct target_spec *on) {
    return on->rack || on->rack_of_rank;
}

static bool in_rack(struct engine *e, const struct target_spec *on, const char *node) {
    int rack = named_rack(e, on);
    return rack && scenario_rack_of(e->plan->scenario, node) == rack;
}

static bool worker_matches(struct engine *e, const struct target_spec *on, const struct worker *w) {
    if (by_rack(on))
        return in_rack(e, on, w->node);
    if (on->pick == PICK_RANK && !on->node_of_rank)
        return w == current_rank(e, on);
    if (on->pick == PICK_RANK || on->pick == PICK_NAMED) {
        const char *node = named_node(e, on);
        bool whole = on->node_of_rank || on->pick == PICK_RANK || on->local_rank < 0;
        return node && str_eq(w->node, node) && (whole || w->local_rank == on->local_rank);
    }
    return true;
}

/* The target is places, and no worker is there. */
static bool is_without_workers(struct engine *e, const struct target_spec *on) {
    const struct rounds *rs = e->rec.rounds;
    const char *node = named_node(e, on);
    if (!node && !by_rack(on))
        return false;
    for (size_t i = 0; i < rs->workers_n; i++) {
        const char *own = rs->workers[i]->node;
        bool there = by_rack(on) ? in_rack(e, on, own) : str_eq(own, node);
        if (there && targets_worker_lives(e, rs->workers[i]))
            return false;
    }
    return true;
}

bool targets_any_worker_lives(struct engine *e, const struct target_spec *on) {
    const struct rounds *rs = e->rec.rounds;
    for (size_t i = 0; i < rs->workers_n; i++)
        if (worker_matches(e, on, rs->workers[i]) && targets_worker_lives(e, rs->workers[i]))
            return true;
    return false;
}

bool targets_listens_to(struct engine *e, const struct target_spec *on, const struct fault *f,
                        const struct worker *w) {
    if (!w)
        return false;
    bool agent = f && (f->targets & TARGET_AGENT) && !(f->targets & (TARGET_NODE | TARGET_WORKER));
    bool without_workers = on->what == TARGET_STORES || on->what == TARGET_AGENTS || agent ||
                           on->pick == PICK_COORDINATOR || is_without_workers(e, on);
    return without_workers || worker_matches(e, on, w);
}

static bool rack_is_off(struct engine *e, const struct target_spec *on) {
    cluster_each(n, e->cluster) {
        if (in_rack(e, on, node_plan(n)->name) && node_is_on(n))
            return false;
    }
    return true;
}

bool targets_listens_to_agent(struct engine *e, const struct target_spec *on, const char *node) {
    if (by_rack(on))
        return in_rack(e, on, node) || rack_is_off(e, on);
    const char *name = named_node(e, on);
    const struct node *n = name ? cluster_node(e->cluster, name) : NULL;
    return !n || !node_is_on(n) || str_eq(name, node);
}

/* ---- drawing ---- */

static size_t how_many(const struct target_spec *on, size_t n) {
    size_t want = n;
    if (on->pick == PICK_RANDOM)
        want = (size_t)on->count;
    else if (on->pick == PICK_PERCENT)
        want = (n * (size_t)on->count + 99) / 100;
    else if (on->pick == PICK_MAJORITY)
        want = n / 2 + 1;
    return want < n ? want : n;
}

/* Moves `want` items drawn uniformly to the front, in the order they stood in. */
static void draw(struct rand *r, const void **v, size_t n, size_t want) {
    for (size_t taken = 0, i = 0; taken < want; i++)
        if (rand_below(r, n - i) < want - taken)
            v[taken++] = v[i];
}

static void bind_worker(struct engine *e, const struct worker *w, struct bound *b) {
    *b = (struct bound){.worker = w, .node = cluster_node(e->cluster, w->node)};
    b->target = (struct target){.kind = TARGET_WORKER, .pid = (pid_t)w->pid};
    b->target.pidfd = observer_worker_pidfd(e->observer, (pid_t)w->pid);
    snprintf(b->target.name, sizeof(b->target.name), "%s/%d (rank %d)", w->node, w->local_rank,
             w->rank);
}

/* The newest that it has announced under this name; it may have spoken from a child. */
static void find_region(struct engine *e, struct bound *b, const char *name) {
    const struct history *h = e->rec.history;
    for (size_t i = h->n; i-- > 0 && !b->target.region.bytes;) {
        const struct record *r = h->records[i];
        if (r->pid != b->worker->pid || !record_is(r, "region") ||
            !str_eq(json_get_string(r->fields, "name", NULL), name))
            continue;
        b->target.region.pid = (pid_t)json_get_i64(r->fields, "speaker", r->pid);
        b->target.region.address = (uint64_t)json_get_i64(r->fields, "address", 0);
        b->target.region.bytes = (uint64_t)json_get_i64(r->fields, "bytes", 0);
    }
}

static size_t resolve_workers(struct engine *e, struct rand *rand, const struct target_spec *on,
                              struct bound ret[TARGETS_MAX]) {
    const struct rounds *rs = e->rec.rounds;
    const void *v[TARGETS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < rs->workers_n && n < TARGETS_MAX; i++)
        if (worker_matches(e, on, rs->workers[i]) && targets_worker_lives(e, rs->workers[i]))
            v[n++] = rs->workers[i];
    qsort(v, n, sizeof(*v), by_name);
    size_t want = how_many(on, n);
    draw(rand, v, n, want);
    for (size_t i = 0; i < want; i++)
        bind_worker(e, v[i], &ret[i]);
    return want;
}

/* A node that has just been ended may not have been noted yet: its pidfd knows. What would strike it
 * now would take that end for its own. */
static bool node_lives(struct node *n) {
    struct target t;
    node_target(n, &t);
    struct pollfd p = {.fd = t.pidfd, .events = POLLIN};
    return node_is_on(n) && (t.pidfd < 0 || poll(&p, 1, 0) == 0);
}

/* Nodes the target may mean: running ones, or for a fault that switches on, those that are off. */
static size_t candidate_nodes(struct engine *e, const struct target_spec *on, bool off,
                              const void *v[TARGETS_MAX]) {
    size_t n = 0;
    const char *name = named_node(e, on);
    bool by_node = on->pick == PICK_NAMED || on->pick == PICK_RANK;
    cluster_each(node, e->cluster) {
        const struct plan_node *p = node_plan(node);
        bool named = by_rack(on) ? in_rack(e, on, p->name) : !by_node || str_eq(p->name, name);
        bool meant = on->what == TARGET_STORES ? plan_serves_store(e->plan, p) : !p->is_store;
        if (n < TARGETS_MAX && meant && named && (off ? !node_is_on(node) : node_lives(node)))
            v[n++] = node;
    }
    return n;
}

static int rack_of(struct engine *e, const void *node) {
    return scenario_rack_of(e->plan->scenario, node_plan(node)->name);
}

/* Draws among the racks of these nodes; leaves the nodes of those that were drawn. */
static size_t keep_racks(struct engine *e, struct rand *rand, const struct target_spec *on,
                         const void **v, size_t n) {
    const void *racks[CLUSTER_NODES_MAX];
    size_t there = 0, kept = 0;
    for (int rack = 1; rack <= e->plan->scenario->cluster.racks; rack++)
        for (size_t i = 0; i < n && there < CLUSTER_NODES_MAX; i++)
            if (rack_of(e, v[i]) == rack) {
                racks[there++] = v[i]; /* the first of its nodes stands for it */
                break;
            }
    size_t want = how_many(on, there);
    draw(rand, racks, there, want);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < want; k++)
            if (rack_of(e, v[i]) && rack_of(e, v[i]) == rack_of(e, racks[k])) {
                v[kept++] = v[i];
                break;
            }
    return kept;
}

/* Moves those that the target means to the front; returns how many. */
static size_t draw_nodes(struct engine *e, struct rand *rand, const struct target_spec *on,
                         const void **v, size_t n) {
    if (on->what == TARGET_RACKS)
        return keep_racks(e, rand, on, v, n);
    size_t want = how_many(on, n);
    draw(rand, v, n, want);
    return want;
}

static bool bind_node(struct node *n, bool agent, struct bound *b) {
    *b = (struct bound){.node = n};
    if (agent)
        return node_agent_target(n, &b->target) == 0;
    node_target(n, &b->target);
    return true;
}

static size_t resolve_nodes(struct engine *e, struct rand *rand, const struct target_spec *on,
                            const struct fault *f, struct bound ret[TARGETS_MAX]) {
    const void *v[TARGETS_MAX];
    bool agent = !(f->targets & (TARGET_NODE | TARGET_RACK));
    bool off = fault_has(f, EFFECT_STARTS_NODE);
    size_t n = candidate_nodes(e, on, off, v), bound = 0;
    size_t want = draw_nodes(e, rand, on, v, n);
    for (size_t i = 0; i < want; i++)
        bound += bind_node((struct node *)(uintptr_t)v[i], agent, &ret[bound]);
    return bound;
}

/* Groups of nodes are one target, in the hands of the first that is named. */
static size_t bind_groups(struct engine *e, const char *groups, struct bound *b) {
    char first[64];
    size_t n = strcspn(groups, ",|");
    snprintf(first, sizeof(first), "%.*s", (int)n, groups);
    struct node *node = cluster_node(e->cluster, first);
    if (!node)
        return 0;
    *b = (struct bound){.node = node};
    node_target(node, &b->target);
    str_copy(b->target.name, sizeof(b->target.name), groups);
    return 1;
}

int targets_shape(struct engine *e, const struct planned_entry *pa, struct fault_args *ret,
                  struct err *err) {
    const char *word = fault_arg(&pa->args, "shape", NULL);
    struct shape_nodes nodes = {0};
    BUF_FINI struct buf groups = {0};
    *ret = pa->args;
    if (!word || fault_arg(&pa->args, "groups", NULL))
        return 0;
    cluster_each(n, e->cluster) {
        const struct plan_node *p = node_plan(n);
        if (p->is_store && nodes.stores_n < SHAPE_NODES_MAX)
            nodes.stores[nodes.stores_n++] = p->name;
        else if (node_is_on(n) && nodes.n < SHAPE_NODES_MAX)
            nodes.v[nodes.n++] = p->name;
    }
    int shape = shape_of(word, err);
    int r = shape < 0 ? shape : shape_groups(shape, &nodes, pa->args.seed, &groups, err);
    if (r)
        return r;
    struct fault_arg *v = arena_array(&e->arena, struct fault_arg, pa->args.n + 1);
    memcpy(v, pa->args.v, pa->args.n * sizeof(*v));
    v[pa->args.n] = (struct fault_arg){"groups", arena_strdup(&e->arena, buf_str(&groups))};
    ret->v = v;
    ret->n = pa->args.n + 1;
    return 0;
}

static size_t resolve(struct engine *e, struct rand *rand, const struct planned_entry *pa,
                      struct bound ret[TARGETS_MAX]) {
    const struct target_spec *on = &pa->entry->on;
    const struct fault *f = pa->fault;
    const char *groups = fault_arg(&pa->args, "groups", NULL);
    if (groups)
        return bind_groups(e, groups, &ret[0]);
    if (!(f->targets & TARGET_WORKER) || on->what == TARGET_STORES)
        return resolve_nodes(e, rand, on, f, ret);
    bool drawn = on->pick != PICK_NAMED && on->pick != PICK_RANK && on->pick != PICK_ALL;
    if (on->what == TARGET_WORKERS || !drawn)
        return resolve_workers(e, rand, on, ret);
    /* A worker fault on drawn nodes means all their workers. */
    const void *v[TARGETS_MAX];
    size_t n = candidate_nodes(e, on, false, v), want = draw_nodes(e, rand, on, v, n), total = 0;
    for (size_t i = 0; i < want; i++) {
        struct target_spec one = {.what = TARGET_NODES,
                                  .pick = PICK_NAMED,
                                  .local_rank = -1,
                                  .node = node_plan((const struct node *)v[i])->name};
        struct bound some[TARGETS_MAX];
        size_t got = resolve_workers(e, rand, &one, some);
        for (size_t j = 0; j < got && total < TARGETS_MAX; j++)
            ret[total++] = some[j];
    }
    return total;
}

size_t targets_resolve(struct engine *e, struct rand *rand, const struct planned_entry *pa,
                       struct bound ret[TARGETS_MAX]) {
    const char *region = pa->fault->region ? pa->fault->region(&pa->args) : NULL;
    size_t n = resolve(e, rand, pa, ret);
    for (size_t i = 0; i < n && region; i++)
        if (ret[i].worker)
            find_region(e, &ret[i], region);
    return n;
}
