#include "tests/agent/core/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Guards and workers. A guard serves its agent even while that is stopped; a stopped guard serves
 * nobody, but its kernel timer (hard) kills it, and with it the workers, all the same. */

static const int64_t kill_max_ns = TIMING_KILL_NS;

static struct group_model *group_of(struct cluster *c, int node) {
    return &c->nodes[node].group;
}

static void on_exited(struct cluster *c, struct occurrence *o) {
    struct event ev = {.kind = EVENT_WORKER_EXITED};
    ev.exited.wait_status = (int)o->a;
    ev.exited.local_rank = (int)o->b;
    ev.exited.error = "";
    agent_event(c, o->node, &ev);
}

static void on_reaped(struct cluster *c, struct occurrence *o) {
    struct event ev = {.kind = EVENT_GROUP_REAPED};
    ev.reaped.fenced = o->a;
    agent_event(c, o->node, &ev);
}

static void on_started(struct cluster *c, struct occurrence *o) {
    agent_event(c, o->node, &(struct event){.kind = EVENT_WORKERS_STARTED});
}

static void on_guard_dead(struct cluster *c, struct occurrence *o) {
    agent_event(c, o->node, &(struct event){.kind = EVENT_GUARD_DEAD});
}

static bool is_same(struct cluster *c, const struct occurrence *o) {
    return group_of(c, o->node)->number == (uint64_t)o->a && group_of(c, o->node)->alive;
}

/* --- ends --- */

static void peer_fails(struct cluster *c, struct occurrence *o) {
    if (is_same(c, o) && !group_of(c, o->node)->stopping)
        machine_fail_worker(c, o->node);
}

/* The peers of a group that ended without success see a reset, or hang until they are stopped. */
static void disturb_peers(struct cluster *c, int node, int64_t round) {
    for (int i = 0; i < c->n_nodes; i++) {
        struct group_model *g = group_of(c, i);
        if (i == node || !g->alive || g->round != round || !chance(c, 600))
            continue;
        struct occurrence *o = plan(c, c->now_ns + chance_ns(c, MS, 50 * MS), i, peer_fails);
        o->a = (int64_t)g->number;
    }
}

/* All workers of the node are dead; statuses: of each worker in turn. */
static void group_ends(struct cluster *c, int node, int status, bool guard_died) {
    struct group_model *g = group_of(c, node);
    bool fenced = g->by_guard;
    cluster_say(c, node, "workers of round %lld are dead (%d)", (long long)g->round, status);
    g->alive = false;
    if (status)
        disturb_peers(c, node, g->round);
    if (!c->nodes[node].core)
        return;
    if (guard_died) {
        plan_agent(c, c->now_ns + chance_ns(c, 0, MS), node, on_guard_dead);
        return;
    }
    for (int i = 0; i < 2; i++) {
        struct occurrence *o = plan_agent(c, c->now_ns + i, node, on_exited);
        o->a = status;
        o->b = i;
    }
    plan_agent(c, c->now_ns + 2, node, on_reaped)->a = fenced;
}

static void killed(struct cluster *c, struct occurrence *o) {
    if (is_same(c, o))
        group_ends(c, o->node, 9, o->b);
}

/* SIGKILL, by whomever: dead within the budget of the timing rules. */
static void kill_now(struct cluster *c, int node, bool guard_died) {
    struct group_model *g = group_of(c, node);
    if (!g->alive || (g->dying && !guard_died))
        return;
    g->dying = g->stopping = true;
    int64_t takes_ns = chance(c, 100) ? chance_ns(c, 0, kill_max_ns) : chance_ns(c, 0, MS);
    struct occurrence *o = plan(c, c->now_ns + takes_ns, node, killed);
    o->a = (int64_t)g->number;
    o->b = guard_died;
}

static bool guard_runs(const struct cluster *c, int node) {
    return c->nodes[node].guard_stopped_until_ns <= c->now_ns;
}

static void kill_later(struct cluster *c, struct occurrence *o) {
    if (!is_same(c, o))
        return;
    if (guard_runs(c, o->node))
        kill_now(c, o->node, false);
    else
        plan(c, c->nodes[o->node].guard_stopped_until_ns, o->node, kill_later)->a = o->a;
}

static void on_kill(struct cluster *c, struct occurrence *o) {
    if (guard_runs(c, o->node))
        kill_now(c, o->node, false);
    else
        postpone(c, o, c->nodes[o->node].guard_stopped_until_ns);
}

void machine_kill(struct cluster *c, int node) {
    plan(c, c->now_ns, node, on_kill);
}

static void ended_by_term(struct cluster *c, struct occurrence *o) {
    if (is_same(c, o) && !group_of(c, o->node)->dying)
        group_ends(c, o->node, 15, false);
}

/* A stopped guard reads its commands later, in their order. */
static bool is_deferred(struct cluster *c, struct occurrence *o) {
    if (guard_runs(c, o->node))
        return false;
    postpone(c, o, c->nodes[o->node].guard_stopped_until_ns);
    return true;
}

static void on_stop(struct cluster *c, struct occurrence *o) {
    struct group_model *g = group_of(c, o->node);
    int64_t grace_ns = o->a, delay_ns = chance_ns(c, 0, 100 * MS);
    if (is_deferred(c, o) || !g->alive)
        return;
    if (!g->stubborn && delay_ns < grace_ns && !g->stopping)
        plan(c, c->now_ns + delay_ns, o->node, ended_by_term)->a = (int64_t)g->number;
    g->stopping = true;
    plan(c, c->now_ns + grace_ns, o->node, kill_later)->a = (int64_t)g->number;
}

void machine_stop(struct cluster *c, int node, int64_t grace_ns) {
    plan(c, c->now_ns, node, on_stop)->a = grace_ns;
}

void machine_fail_worker(struct cluster *c, int node) {
    struct group_model *g = group_of(c, node);
    if (!g->alive || g->stopping)
        return;
    cluster_say(c, node, "a worker of round %lld fails", (long long)g->round);
    struct occurrence *o = plan_agent(c, c->now_ns + chance_ns(c, 0, MS), node, on_exited);
    o->a = 1 << 8;
    disturb_peers(c, node, g->round);
}

static void orphan_killed(struct cluster *c, struct occurrence *o) {
    if (is_same(c, o))
        group_ends(c, o->node, 9, true);
}

/* Its guard sees the socket end; a stopped one dies by its own deadline, whatever a new agent's
 * guard is told. */
void machine_agent_gone(struct cluster *c, int node) {
    struct node *n = &c->nodes[node];
    machine_kill(c, node);
    int64_t hard_ns = node_to_real(n, n->hard_ns);
    struct occurrence *o = plan(c, hard_ns > c->now_ns ? hard_ns : c->now_ns, node, orphan_killed);
    o->a = (int64_t)n->group.number;
}

void machine_power_off(struct cluster *c, int node) {
    struct group_model *g = group_of(c, node);
    if (g->alive)
        group_ends(c, node, 9, false);
}

/* --- deadlines --- */

static void on_hard(struct cluster *c, struct occurrence *o) {
    struct node *n = &c->nodes[o->node];
    if (n->hard_ns > node_now(c, n).boottime_ns || !n->group.alive)
        return;
    cluster_say(c, o->node, "the kernel ends the guard");
    n->guard_stopped_until_ns = 0;
    kill_now(c, o->node, true);
}

static void on_fence(struct cluster *c, struct occurrence *o) {
    struct node *n = &c->nodes[o->node];
    n->fence_planned = false;
    if (n->fence_ns > node_now(c, n).boottime_ns) {
        n->fence_planned = true;
        plan(c, node_to_real(n, n->fence_ns), o->node, on_fence);
        return;
    }
    if (n->group.alive && guard_runs(c, o->node)) {
        n->group.by_guard = !n->group.stopping;
        kill_now(c, o->node, false);
    }
    plan(c, node_to_real(n, n->hard_ns), o->node, on_hard);
}

void machine_deadline(struct cluster *c, int node, int64_t fence_ns, int64_t hard_ns) {
    struct node *n = &c->nodes[node];
    n->fence_ns = fence_ns;
    n->hard_ns = hard_ns;
    if (n->fence_planned)
        return;
    n->fence_planned = true;
    plan(c, node_to_real(n, fence_ns), node, on_fence);
}

/* --- start and success --- */

/* A group can only finish together with all of its round. */
static bool round_is_whole(const struct cluster *c, int64_t round, int group_world) {
    int n = 0;
    for (int i = 0; i < c->n_nodes; i++) {
        const struct group_model *g = &c->nodes[i].group;
        n += g->alive && !g->stopping && g->round == round;
    }
    return n == group_world;
}

static void finish(struct cluster *c, struct occurrence *o) {
    struct group_model *g = group_of(c, o->node);
    if (!is_same(c, o) || g->stopping)
        return;
    g->stopping = true;
    g->alive = false;
    cluster_say(c, o->node, "workers of round %lld succeed", (long long)g->round);
    judge_success(c, g->uid, g->round);
    for (int i = 0; i < 2 && c->nodes[o->node].core; i++)
        plan_agent(c, c->now_ns + i, o->node, on_exited)->b = i;
    if (c->nodes[o->node].core)
        plan_agent(c, c->now_ns + 2, o->node, on_reaped);
}

static void round_finish(struct cluster *c, struct occurrence *o) {
    if (!round_is_whole(c, o->a, (int)o->b))
        return;
    for (int i = 0; i < c->n_nodes; i++) {
        struct group_model *g = group_of(c, i);
        if (g->alive && g->round == o->a)
            plan(c, c->now_ns + chance_ns(c, 0, 200 * MS), i, finish)->a = (int64_t)g->number;
    }
}

static void born(struct cluster *c, int node, const struct round_spec *s) {
    struct node *n = &c->nodes[node];
    uint64_t number = n->group.number + 1;
    judge_start(c, node, s);
    n->group = (struct group_model){.alive = true, .round = s->round, .number = number};
    memcpy(n->group.uid, rendezvous_uid(n->core), UID_SIZE);
    n->group.stubborn = chance(c, 100);
    plan_agent(c, c->now_ns + chance_ns(c, 0, 20 * MS), node, on_started);
    struct occurrence *o =
        plan(c, c->now_ns + chance_ns(c, 100 * MS, 2500 * MS), node, round_finish);
    o->a = s->round;
    o->b = s->group_world;
    if (!c->calm_now && chance(c, 150)) {
        o = plan(c, c->now_ns + chance_ns(c, 0, 1000 * MS), node, peer_fails);
        o->a = (int64_t)number;
    }
}

struct birth {
    struct round_spec spec;
    char master_addr[NAME_SIZE], token[TOKEN_SIZE];
};

/* The guard looks at the deadline when it forks. */
static void on_start(struct cluster *c, struct occurrence *o) {
    struct node *n = &c->nodes[o->node];
    struct birth *b = o->payload;
    if (is_deferred(c, o))
        return;
    if (b->spec.deadline_required && n->fence_ns <= node_now(c, n).boottime_ns)
        plan_agent(c, c->now_ns, o->node, on_reaped)->a = 1;
    else
        born(c, o->node, &b->spec);
}

void machine_start(struct cluster *c, int node, const struct round_spec *spec) {
    struct birth *b = calloc(1, sizeof(*b));
    b->spec = *spec;
    snprintf(b->master_addr, sizeof(b->master_addr), "%s", spec->master_addr);
    snprintf(b->token, sizeof(b->token), "%s", spec->token);
    b->spec.master_addr = b->master_addr;
    b->spec.token = b->token;
    struct occurrence *o = plan_agent(c, c->now_ns, node, on_start);
    o->process = false;
    o->payload = b;
    o->drop = free;
}
