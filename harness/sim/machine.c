/* Guards and workers. A guard serves its agent even while that is stopped; a stopped guard serves
 * nobody, but its kernel timer (hard) kills it, and with it the workers, all the same. */
#include "harness/sim/history_writer.h"

#include "base/str.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const int64_t kill_max_ns = TIMING_KILL_NS;

static struct group_model *group_of(struct sim *c, int node) {
    return &c->nodes[node].group;
}

static struct judged_group *workers_of(struct sim *c, int node) {
    return &c->nodes[node].shown.group;
}

static void on_exited(struct sim *c, struct occurrence *o) {
    struct event ev = {.kind = EVENT_WORKER_EXITED};
    ev.exited.wait_status = (int)o->a;
    ev.exited.local_rank = (int)o->b;
    ev.exited.error = o->a == 1 << 8 ? "out of luck" : "";
    sim_agent_event(c, o->node, &ev);
}

static void on_reaped(struct sim *c, struct occurrence *o) {
    struct event ev = {.kind = EVENT_GROUP_REAPED};
    ev.reaped.fenced = o->a;
    sim_agent_event(c, o->node, &ev);
}

static void on_started(struct sim *c, struct occurrence *o) {
    sim_agent_event(c, o->node, &(struct event){.kind = EVENT_WORKERS_STARTED});
}

static void on_guard_dead(struct sim *c, struct occurrence *o) {
    struct event ev = {.kind = EVENT_GUARD_DEAD};
    ev.guard_dead.wait_status = SIGKILL;
    ev.guard_dead.fenced = o->a;
    sim_agent_event(c, o->node, &ev);
}

/* Frozen workers do what they were about to do later. */
static bool is_frozen(struct sim *c, struct occurrence *o) {
    int64_t until_ns = c->nodes[o->node].frozen_until_ns;
    if (until_ns <= c->now_ns)
        return false;
    sim_postpone(c, o, until_ns);
    return true;
}

static bool is_same(struct sim *c, const struct occurrence *o) {
    return group_of(c, o->node)->number == (uint64_t)o->a && workers_of(c, o->node)->alive;
}

/* --- ends --- */

static void peer_fails(struct sim *c, struct occurrence *o) {
    if (!is_frozen(c, o) && is_same(c, o) && !group_of(c, o->node)->stopping)
        sim_machine_fail_worker(c, o->node);
}

/* The peers of a group that ended without success see a reset, or hang until they are stopped. */
static void disturb_peers(struct sim *c, int node, int64_t round) {
    for (int i = 0; i < c->n_nodes; i++) {
        struct group_model *g = group_of(c, i);
        struct judged_group *w = workers_of(c, i);
        bool concerned = i != node && w->alive && !w->failed && !g->disturbed && w->round == round;
        if (!concerned || !sim_chance(&g->rand, 600))
            continue;
        g->disturbed = true;
        int64_t after_ns = sim_chance_ns(&g->rand, SIM_MS, 50 * SIM_MS);
        struct occurrence *o = sim_plan(c, c->now_ns + after_ns, i, peer_fails);
        o->a = (int64_t)g->number;
    }
}

/* The guard of an agent that is gone ends with its workers: the next one is another process. */
static void guard_ends(struct sim *c, int node) {
    if (group_of(c, node)->orphan && !workers_of(c, node)->alive)
        c->nodes[node].guard_stopped_until_ns = 0;
}

/* What has ended the workers: the guard did, or the kernel when the guard was gone. */
enum ended_by { BY_GUARD, BY_ITS_TIMER, BY_ITS_DEATH };

/* All workers of the node are dead; statuses: of each worker in turn. */
static void group_ends(struct sim *c, int node, int status, enum ended_by by) {
    struct group_model *g = group_of(c, node);
    struct judged_group *w = workers_of(c, node);
    bool fenced = w->by_guard;
    sim_say(c, node, "workers of round %lld are dead (%d)", (long long)w->round, status);
    judge_ended(&c->judge, node);
    w->ended_ns = c->now_ns;
    w->alive = false;
    w->failed |= status != 0;
    guard_ends(c, node);
    history_writer_workers_end(c, node, status);
    sim_lifeline_release(c, node);
    if (status)
        disturb_peers(c, node, w->round);
    if (!c->nodes[node].core || w->life != c->nodes[node].shown.life)
        return;
    if (by != BY_GUARD) {
        int64_t at_ns = c->now_ns + sim_chance_ns(&g->rand, 0, SIM_MS);
        sim_plan_agent(c, at_ns, node, on_guard_dead)->a = by == BY_ITS_TIMER;
        return;
    }
    int64_t stuck_ns = c->nodes[node].stuck_until_ns;
    w->reaped_ns = stuck_ns > c->now_ns ? stuck_ns : c->now_ns;
    for (int i = 0; i < 2; i++) {
        struct occurrence *o = sim_plan_agent(c, w->reaped_ns + i, node, on_exited);
        o->a = status;
        o->b = i;
    }
    sim_plan_agent(c, w->reaped_ns + 2, node, on_reaped)->a = fenced;
}

static void killed(struct sim *c, struct occurrence *o) {
    if (is_same(c, o))
        group_ends(c, o->node, 9, (enum ended_by)o->b);
}

/* SIGKILL, by whomever: dead within the budget of the timing rules. */
static void kill_now(struct sim *c, int node, enum ended_by by) {
    struct group_model *g = group_of(c, node);
    struct judged_group *w = workers_of(c, node);
    if (!w->alive || (g->dying && by == BY_GUARD))
        return;
    g->dying = g->stopping = true;
    g->guard_dead = by != BY_GUARD;
    sim_lifeline_release(c, node);
    int64_t takes_ns = sim_chance_ns(&g->rand, 0, sim_chance(&g->rand, 100) ? kill_max_ns : SIM_MS);
    struct occurrence *o = sim_plan(c, c->now_ns + takes_ns, node, killed);
    o->a = (int64_t)g->number;
    o->b = by;
}

static bool guard_runs(const struct sim *c, int node) {
    return c->nodes[node].guard_stopped_until_ns <= c->now_ns;
}

static void kill_later(struct sim *c, struct occurrence *o) {
    if (!is_same(c, o))
        return;
    if (guard_runs(c, o->node))
        kill_now(c, o->node, BY_GUARD);
    else
        sim_plan(c, c->nodes[o->node].guard_stopped_until_ns, o->node, kill_later)->a = o->a;
}

static void on_kill(struct sim *c, struct occurrence *o) {
    if (guard_runs(c, o->node))
        kill_now(c, o->node, BY_GUARD);
    else
        sim_postpone(c, o, c->nodes[o->node].guard_stopped_until_ns);
}

void sim_machine_kill(struct sim *c, int node) {
    sim_plan_agent(c, c->now_ns, node, on_kill)->process = false;
}

static void ended_by_term(struct sim *c, struct occurrence *o) {
    bool stuck = c->nodes[o->node].stuck_until_ns > c->now_ns;
    if (!is_frozen(c, o) && is_same(c, o) && !group_of(c, o->node)->dying && !stuck)
        group_ends(c, o->node, 15, BY_GUARD);
}

/* A stopped guard reads its commands later, in their order. */
static bool is_deferred(struct sim *c, struct occurrence *o) {
    if (guard_runs(c, o->node))
        return false;
    sim_postpone(c, o, c->nodes[o->node].guard_stopped_until_ns);
    return true;
}

static void on_stop(struct sim *c, struct occurrence *o) {
    struct group_model *g = group_of(c, o->node);
    struct judged_group *w = workers_of(c, o->node);
    int64_t grace_ns = o->a;
    if (is_deferred(c, o) || !w->alive)
        return;
    int64_t delay_ns = sim_chance_ns(&g->rand, 0, 100 * SIM_MS);
    if (!g->stubborn && delay_ns < grace_ns && !g->stopping)
        sim_plan(c, c->now_ns + delay_ns, o->node, ended_by_term)->a = (int64_t)g->number;
    g->stopping = true;
    sim_plan(c, c->now_ns + grace_ns, o->node, kill_later)->a = (int64_t)g->number;
}

void sim_machine_stop(struct sim *c, int node, int64_t grace_ns) {
    struct occurrence *o = sim_plan_agent(c, c->now_ns, node, on_stop);
    o->process = false;
    o->a = grace_ns;
}

/* A group fails once: while its agent is stopped it would be failed by its peers for ever. */
void sim_machine_fail_worker(struct sim *c, int node) {
    struct group_model *g = group_of(c, node);
    struct judged_group *w = workers_of(c, node);
    if (!w->alive || w->failed || g->stopping)
        return;
    w->failed = w->unasked = true;
    w->failed_ns = c->now_ns;
    sim_say(c, node, "a worker of round %lld fails", (long long)w->round);
    struct occurrence *o =
        sim_plan_agent(c, c->now_ns + sim_chance_ns(&g->rand, 0, SIM_MS), node, on_exited);
    w->failed_status = sim_chance(&g->rand, 100) ? SIGSEGV : 1 << 8;
    w->failed_rank = (int)rand_below(&g->rand, SIM_WORKERS);
    o->a = w->failed_status;
    o->b = w->failed_rank;
    history_writer_worker_end(c, node, w->failed_rank, w->failed_status);
    disturb_peers(c, node, w->round);
}

static void orphan_killed(struct sim *c, struct occurrence *o) {
    if (is_same(c, o))
        group_ends(c, o->node, 9, BY_ITS_TIMER);
}

/* Its guard sees the socket end; a stopped one dies by its own deadline, whatever a new agent's
 * guard is told. */
static void orphan_plan(struct sim *c, int node) {
    struct sim_node *n = &c->nodes[node];
    struct occurrence *o = sim_plan(c, sim_node_to_real(n, n->hard_ns), node, orphan_killed);
    o->a = (int64_t)n->group.number;
}

void sim_machine_agent_gone(struct sim *c, int node) {
    struct group_model *g = group_of(c, node);
    g->orphan = true;
    guard_ends(c, node);
    sim_plan(c, c->now_ns, node, kill_later)->a = (int64_t)g->number;
    orphan_plan(c, node);
}

void sim_machine_power_off(struct sim *c, int node) {
    c->nodes[node].guard_stopped_until_ns = 0; /* the next one is another process */
    if (workers_of(c, node)->alive)
        group_ends(c, node, 9, BY_GUARD);
}

bool sim_machine_kill_guard(struct sim *c, int node) {
    if (!workers_of(c, node)->alive)
        return false;
    c->nodes[node].guard_stopped_until_ns = 0;
    workers_of(c, node)->unasked |= !group_of(c, node)->stopping;
    kill_now(c, node, BY_ITS_DEATH);
    return true;
}

/* --- deadlines --- */

static void on_hard(struct sim *c, struct occurrence *o) {
    struct sim_node *n = &c->nodes[o->node];
    if (n->hard_ns > sim_node_now(c, n).boottime_ns || !n->shown.group.alive)
        return;
    sim_say(c, o->node, "the kernel ends the guard");
    sim_mark(c, SIM_MARK_GUARD_TIMER);
    n->guard_stopped_until_ns = 0;
    n->shown.group.timed_out = true;
    kill_now(c, o->node, BY_ITS_TIMER);
}

static void on_fence(struct sim *c, struct occurrence *o) {
    struct sim_node *n = &c->nodes[o->node];
    n->fence_planned = false;
    if (n->fence_ns > sim_node_now(c, n).boottime_ns) {
        n->fence_planned = true;
        sim_plan(c, sim_node_to_real(n, n->fence_ns), o->node, on_fence);
        return;
    }
    if (n->shown.group.alive && guard_runs(c, o->node)) {
        n->shown.group.by_guard = !n->group.stopping;
        n->shown.group.timed_out = true;
        sim_mark(c, SIM_MARK_FENCED);
        kill_now(c, o->node, BY_GUARD);
    }
    sim_plan(c, sim_node_to_real(n, n->hard_ns), o->node, on_hard);
}

void sim_machine_deadline(struct sim *c, int node, int64_t fence_ns, int64_t hard_ns) {
    struct sim_node *n = &c->nodes[node];
    n->fence_ns = fence_ns;
    n->hard_ns = hard_ns;
    if (n->fence_planned)
        return;
    n->fence_planned = true;
    sim_plan(c, sim_node_to_real(n, fence_ns), node, on_fence);
}

void sim_machine_replan(struct sim *c, int node) {
    struct sim_node *n = &c->nodes[node];
    if (n->fence_planned)
        sim_plan(c, sim_node_to_real(n, n->fence_ns), node, on_fence);
    if (n->shown.group.alive)
        sim_plan(c, sim_node_to_real(n, n->hard_ns), node, on_hard);
    if (n->shown.group.alive && n->group.orphan)
        orphan_plan(c, node);
}

/* --- start and success --- */

/* A group can only finish together with all of its round. */
static int64_t round_frozen_ns(const struct sim *c, int64_t world_key) {
    int64_t until_ns = 0;
    for (int i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].shown.group.alive && c->nodes[i].group.world_key == world_key &&
            c->nodes[i].frozen_until_ns > until_ns)
            until_ns = c->nodes[i].frozen_until_ns;
    return until_ns;
}

static bool round_is_whole(const struct sim *c, int64_t world_key, int group_world) {
    int n = 0;
    for (int i = 0; i < c->n_nodes; i++) {
        const struct group_model *g = &c->nodes[i].group;
        const struct judged_group *w = &c->nodes[i].shown.group;
        n += w->alive && !w->failed && !g->stopping && g->world_key == world_key;
    }
    return n == group_world;
}

static void finish(struct sim *c, struct occurrence *o) {
    struct group_model *g = group_of(c, o->node);
    struct judged_group *w = workers_of(c, o->node);
    if (is_frozen(c, o) || !is_same(c, o) || w->failed || g->stopping)
        return;
    if (c->nodes[o->node].stuck_until_ns > c->now_ns) {
        sim_plan(c, c->nodes[o->node].stuck_until_ns, o->node, finish)->a = o->a;
        return;
    }
    g->stopping = true;
    w->alive = false;
    w->ended_ns = c->now_ns;
    guard_ends(c, o->node);
    sim_lifeline_release(c, o->node);
    sim_say(c, o->node, "workers of round %lld succeed", (long long)w->round);
    history_writer_workers_end(c, o->node, 0);
    judge_success(&c->judge, w->uid, w->round);
    for (int i = 0; i < 2 && c->nodes[o->node].core; i++)
        sim_plan_agent(c, c->now_ns + i, o->node, on_exited)->b = i;
    if (c->nodes[o->node].core)
        sim_plan_agent(c, c->now_ns + 2, o->node, on_reaped);
}

static void round_finish(struct sim *c, struct occurrence *o) {
    int64_t frozen_ns = round_frozen_ns(c, o->a);
    if (!round_is_whole(c, o->a, (int)o->b))
        return;
    if (frozen_ns > c->now_ns) {
        sim_postpone(c, o, frozen_ns);
        return;
    }
    for (int i = 0; i < c->n_nodes; i++) {
        struct group_model *g = group_of(c, i);
        struct judged_group *w = workers_of(c, i);
        if (w->alive && g->world_key == o->a)
            sim_plan(c, c->now_ns + sim_chance_ns(&g->rand, 0, 200 * SIM_MS), i, finish)->a =
                (int64_t)g->number;
    }
}

/* Round numbers begin anew with a store that was wiped; tokens do not. */
static int64_t world_key_of(const struct round_spec *s) {
    uint64_t key = (uint64_t)s->round;
    for (const char *p = s->token; *p; p++)
        key = (key ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    return (int64_t)key;
}

static void born(struct sim *c, int node, const struct round_spec *s) {
    struct sim_node *n = &c->nodes[node];
    uint64_t number = n->group.number + 1;
    judge_start(&c->judge, node, s);
    history_writer_workers_start(c, node, s);
    n->group = (struct group_model){.world_key = world_key_of(s), .number = number};
    n->shown.group = (struct judged_group){.alive = true,
                                           .round = s->round,
                                           .former = judge_is_former(&c->judge, s),
                                           .place = {.slots = s->local_world,
                                                     .group_rank = s->group_rank,
                                                     .rank_base = s->rank_base,
                                                     .role_rank_base = s->role_rank_base,
                                                     .role_world = s->role_world},
                                           .life = n->shown.life};
    memcpy(n->shown.group.uid, rendezvous_uid(n->core), UID_SIZE);
    str_copy(n->shown.group.place.role, ROLE_SIZE, s->role);
    str_copy(n->shown.group.place.token, TOKEN_SIZE, s->token);
    struct rand *r = &n->group.rand;
    *r = sim_rand(c->schedule->seed, CONCERN_GROUP, node, (uint64_t)s->round);
    n->group.stubborn = sim_chance(r, 100);
    n->group.closes = sim_chance(r, 100);
    if (s->lifeline)
        sim_lifeline_born(c, node);
    sim_plan_agent(c, c->now_ns + sim_chance_ns(r, 0, 20 * SIM_MS), node, on_started);
    sim_crash_soon(c, node);
    int64_t usual_ns = 2500 * SIM_MS;
    int64_t work_ns = c->calm_now || c->schedule->patient ? usual_ns : c->schedule->work_ns;
    int64_t from_ns = c->now_ns;
    if (c->schedule->patient && from_ns < c->schedule->trouble_ns - usual_ns)
        from_ns = c->schedule->trouble_ns - usual_ns;
    struct occurrence *o =
        sim_plan(c, from_ns + sim_chance_ns(r, 100 * SIM_MS, work_ns), node, round_finish);
    o->a = n->group.world_key;
    o->b = s->group_world;
    if (!c->calm_now && sim_chance(r, c->schedule->fragile)) {
        o = sim_plan(c, c->now_ns + sim_chance_ns(r, 0, 1000 * SIM_MS), node, peer_fails);
        o->a = (int64_t)number;
    }
}

struct birth {
    struct round_spec spec;
    char master_addr[NAME_SIZE], token[TOKEN_SIZE];
};

static void birth_drop(struct sim *c, void *payload) {
    pool_give(&c->pool, payload, sizeof(struct birth));
}

/* The guard looks at the deadline when it forks. */
static void on_start(struct sim *c, struct occurrence *o) {
    struct sim_node *n = &c->nodes[o->node];
    struct birth *b = o->payload;
    if (is_deferred(c, o))
        return;
    if (b->spec.deadline_required && n->fence_ns <= sim_node_now(c, n).boottime_ns)
        sim_plan_agent(c, c->now_ns, o->node, on_reaped)->a = 1;
    else
        born(c, o->node, &b->spec);
}

void sim_machine_start(struct sim *c, int node, const struct round_spec *spec) {
    struct birth *b = pool_take(&c->pool, sizeof(*b));
    b->spec = *spec;
    snprintf(b->master_addr, sizeof(b->master_addr), "%s", spec->master_addr);
    snprintf(b->token, sizeof(b->token), "%s", spec->token);
    b->spec.master_addr = b->master_addr;
    b->spec.token = b->token;
    struct occurrence *o = sim_plan_agent(c, c->now_ns, node, on_start);
    o->process = false;
    o->payload = b;
    o->drop = birth_drop;
}
