/* An agent's process: one step of its core, and what it asks for. */
#include "harness/explore/copy_on_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[EXPLORE_AGENTS_MAX] = {"n0", "n1", "n2"};

/* What is drawn follows from what the state says, not from how it was reached. */
static uint64_t seed_of(const struct world *w, int node) {
    const struct explore_node *n = &w->nodes[node];
    uint64_t seed = canonical_mix(1, (uint64_t)node << 32 | (uint64_t)n->shown.life << 16);
    return canonical_mix(seed, (uint64_t)n->joins << 32 | (uint64_t)w->judge.head.round);
}

void agent_boot(struct world *w, int node) {
    struct explore_node *n = &w->nodes[node];
    const struct explore_config *config = w->config;
    struct err err = {0};
    struct rendezvous_config c = {
        .run_id = "job",
        .node = names[node],
        .addr = names[node],
        .role = "default",
        .slots = SLOTS,
        .min = config->min,
        .max = config->max,
        .max_restarts = config->max_restarts,
        .attempt = "",
        .timing = {EXPLORE_STEP_NS, 3 * EXPLORE_STEP_NS, 3 * EXPLORE_STEP_NS + EXPLORE_STEP_NS / 4,
                   4 * EXPLORE_STEP_NS},
        .last_call_ns = EXPLORE_STEP_NS,
        .admit_ns = 0,
        .join_timeout_ns = 2 * EXPLORE_STEP_NS,
        .stop_timeout_ns = EXPLORE_STEP_NS,
        .shutdown_grace_ns = EXPLORE_STEP_NS,
        .give_up_ns = 1000 * EXPLORE_STEP_NS,
    };
    n->shown.life++;
    n->joins = 0;
    n->stopped = n->guard_stopped = false;
    n->shown.signaled = 0;
    n->timer_ns = INT64_MAX;
    struct rendezvous *r = rendezvous_new(&c, seed_of(w, node) ^ 1, &err);
    if (!r) {
        world_violation(w, "config: %s", err.msg);
        return;
    }
    n->core = core_share_new(r);
    world_say(w, node, "the agent starts");
    agent_event(w, node, &(struct event){.kind = EVENT_START});
}

/* What it had sent and is not marked as late is lost with its connections. */
void agent_gone(struct world *w, int node) {
    struct explore_node *n = &w->nodes[node];
    int kept = 0;
    core_share_drop(n->core);
    n->core = NULL;
    for (int i = 0; i < n->n_pending; i++) {
        if (n->pending[i].held && message_writes(n->pending[i].message)) {
            n->pending[i].ghost = true;
            n->pending[kept++] = n->pending[i];
        } else {
            message_free(n->pending[i].message);
        }
    }
    memset(n->pending + kept, 0, sizeof(n->pending[0]) * (size_t)(PENDING_MAX - kept));
    n->n_pending = kept;
    memset(n->streams, 0, sizeof(n->streams));
    memset(n->pipe, 0, sizeof(n->pipe));
    n->n_pipe = 0;
    n->stopped = n->cut = false;
    n->shown.signaled = 0;
    n->timer_ns = INT64_MAX;
}

static void watch(struct world *w, int node, const struct action *a) {
    struct explore_stream *s = &w->nodes[node].streams[a->watch.slot];
    memset(s, 0, sizeof(*s));
    s->generation = a->watch.generation;
    memcpy(s->uid, a->watch.key.uid, sizeof(s->uid));
    memcpy(s->inc, a->watch.key.inc, sizeof(s->inc));
    for (s->at = 0; s->at < w->n_log; s->at++)
        if (w->log[s->at]->entry.mod_revision >= a->watch.from_revision)
            break;
}

/* What is answered at once by this node itself, when the actions are done. */
struct aftermath {
    bool port, beat, started, exits;
    int code;
};

static bool is_join(const struct txn *txn) {
    for (size_t i = 0; i < txn->n_ops; i++)
        if (txn->ops[i].put && txn->ops[i].key.kind == KEY_MEMBER)
            return true;
    return false;
}

static void act(struct world *w, int node, const struct action *a, struct aftermath *after) {
    struct explore_node *n = &w->nodes[node];
    switch (a->kind) {
    case ACTION_SNAPSHOT:
        message_act(w, node, a);
        break;
    case ACTION_BEAT:
        after->beat = true;
        message_act(w, node, a);
        break;
    case ACTION_TXN:
        n->joins += is_join(&a->txn.txn);
        message_act(w, node, a);
        break;
    case ACTION_LEASE_GRANT:
    case ACTION_LEASE_KEEPALIVE:
        message_act(w, node, a);
        break;
    case ACTION_WATCH:
        watch(w, node, a);
        break;
    case ACTION_LIFELINE_OPEN: /* none is configured */
    case ACTION_LIFELINE_DROP:
    case ACTION_TREE:
    case ACTION_TREE_CANCEL:
    case ACTION_LOOK_UP:
        break;
    case ACTION_UNWATCH:
        memset(&n->streams[a->watch.slot], 0, sizeof(n->streams[0]));
        break;
    case ACTION_DEADLINE:
        n->fence_ns = a->deadline.fence_ns;
        break;
    case ACTION_START:
        machine_start(w, node, a->start);
        after->started = n->shown.group.alive;
        break;
    case ACTION_STOP:
        machine_stop(w, node);
        break;
    case ACTION_KILL:
        machine_die(w, node, 9, false, false);
        break;
    case ACTION_NEED_PORT:
        after->port = true;
        break;
    case ACTION_TIMER:
        n->timer_ns = a->timer.at_ns;
        break;
    case ACTION_CLAIM:
        world_say(w, node, "%s %lld", a->claim.what, (long long)a->claim.round);
        break;
    case ACTION_LOG:
        world_say(w, node, "%s", a->log);
        break;
    case ACTION_STORE:
        world_say(w, node, "the store %s", a->store.text);
        break;
    case ACTION_EXIT:
        world_say(w, node, "exit %d %s", a->exit.code, a->exit.text);
        after->exits = true;
        after->code = a->exit.code;
        break;
    }
}

void agent_event(struct world *w, int node, const struct event *ev) {
    struct aftermath after = {0};
    struct rendezvous *r = world_core(w, node);
    size_t count = 0;
    rendezvous_reseed(r, seed_of(w, node));
    const struct action *a = rendezvous_step(r, ev, world_now(w), &count);
    for (size_t i = 0; i < count; i++)
        act(w, node, &a[i], &after);
    if (after.exits) {
        judge_exit(world_judge(w), node, after.code);
        agent_gone(w, node);
        return;
    }
    if (after.port) {
        struct event port = {.kind = EVENT_PORT};
        port.port.addr = names[node];
        port.port.port = 20000 + node;
        agent_event(w, node, &port);
    }
    if (after.started && w->nodes[node].core)
        agent_event(w, node, &(struct event){.kind = EVENT_WORKERS_STARTED});
    if (after.beat && w->nodes[node].core)
        message_beat(w, node);
}
