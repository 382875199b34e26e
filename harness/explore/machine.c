/* Guards and workers. A guard kills at the fence; a stopped one is killed by its kernel, and its
 * workers with it, before another step of time has passed. */
#include "harness/explore/world.h"

#include <string.h>

static void pipe_put(struct world *w, int node, struct pipe_item item) {
    struct explore_node *n = &w->nodes[node];
    if (!n->core)
        return;
    if (n->n_pipe == PIPE_MAX) {
        world_violation(w, "the guard of n%d has more than %d things to tell", node, PIPE_MAX);
        return;
    }
    n->pipe[n->n_pipe++] = item;
}

/* The guard looks at the deadline when it forks. */
void machine_start(struct world *w, int node, const struct round_spec *s) {
    struct explore_node *n = &w->nodes[node];
    if (s->deadline_required && n->fence_ns <= w->now_ns) {
        pipe_put(w, node, (struct pipe_item){.kind = PIPE_NEVER_BORN, .fenced = true});
        return;
    }
    judge_start(world_judge(w), node, s);
    world_say(w, node, "workers of round %lld start", (long long)s->round);
    n->shown.group = (struct judged_group){.alive = true, .round = s->round};
    n->stopping = false;
    memcpy(n->shown.group.uid, rendezvous_uid(n->core->r), strlen(rendezvous_uid(n->core->r)));
    int alive = 0;
    for (int i = 0; i < w->config->agents; i++)
        alive += w->nodes[i].shown.group.alive && w->nodes[i].shown.group.round == s->round;
    if (alive == s->group_world)
        w->whole_round = s->round;
}

void machine_stop(struct world *w, int node) {
    struct explore_node *n = &w->nodes[node];
    struct judged_stop s = {.fenced = n->fence_ns && n->fence_ns <= w->now_ns};
    judge_stop(world_judge(w), node, &s);
    n->stopping = n->shown.group.alive;
}

void machine_die(struct world *w, int node, int status, bool by_fence, bool guard_died) {
    struct explore_node *n = &w->nodes[node];
    if (!n->shown.group.alive)
        return;
    world_say(w, node, "workers of round %lld are dead", (long long)n->shown.group.round);
    bool fenced = by_fence && !n->stopping;
    struct pipe_item item = {guard_died ? PIPE_GUARD_DEAD : PIPE_DEAD, status, fenced,
                             n->shown.group.failed};
    memset(&n->shown.group, 0, sizeof(n->shown.group));
    n->stopping = false;
    pipe_put(w, node, item);
}

/* Those of a node succeed when all of the round have lived at one time; each at its own pace. */
void machine_succeed(struct world *w, int node) {
    struct explore_node *n = &w->nodes[node];
    judge_success(world_judge(w), n->shown.group.uid, n->shown.group.round);
    machine_die(w, node, 0, false, false);
}

void machine_fail(struct world *w, int node) {
    w->nodes[node].shown.group.failed = true;
    world_say(w, node, "a worker fails");
    pipe_put(w, node, (struct pipe_item){.kind = PIPE_ONE_FAILED, .status = 1 << 8});
}

static void tell_exits(struct world *w, int node, int from, int to, int status) {
    struct event ev = {.kind = EVENT_WORKER_EXITED};
    ev.exited.wait_status = status;
    ev.exited.error = "";
    for (int i = from; i < to && w->nodes[node].core; i++) {
        ev.exited.local_rank = i;
        agent_event(w, node, &ev);
    }
}

void machine_tell(struct world *w, int node) {
    struct explore_node *n = &w->nodes[node];
    struct pipe_item item = n->pipe[0];
    struct event ev = {.kind = EVENT_GROUP_REAPED};
    n->n_pipe--;
    memmove(n->pipe, n->pipe + 1, sizeof(n->pipe[0]) * (size_t)n->n_pipe);
    memset(&n->pipe[n->n_pipe], 0, sizeof(n->pipe[0]));
    if (item.kind == PIPE_ONE_FAILED) {
        tell_exits(w, node, 0, 1, item.status);
        return;
    }
    if (item.kind == PIPE_DEAD)
        tell_exits(w, node, item.exited, SLOTS, item.status);
    ev.reaped.fenced = item.fenced;
    if (item.kind == PIPE_GUARD_DEAD) { /* by its timer: nothing else ends a guard here */
        ev.kind = EVENT_GUARD_DEAD;
        ev.guard_dead.pid = 0;
        ev.guard_dead.wait_status = 9;
        ev.guard_dead.fenced = true;
    }
    if (n->core)
        agent_event(w, node, &ev);
}
