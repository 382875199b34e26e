#include "harness/sim/simulation.h"

#include "agent/base/str.h"

/* What strikes agents and store. A fault finds the world as it is: where there is nothing for it to
 * strike, it has not happened (false). */

static void come_back(struct sim *c, int node) {
    if (sim_chance(c, 600))
        sim_boot(c, node, sim_chance_ns(c, SIM_MS, 2500 * SIM_MS));
}

static void mark_coordinator(struct sim *c, int node) {
    if (c->judge.head.phase == HEAD_FORM && c->nodes[node].leads)
        sim_mark(c, SIM_MARK_COORDINATOR_GONE);
}

static bool agent_kill(struct sim *c, int node) {
    if (!c->nodes[node].core)
        return false;
    sim_say(c, node, "FAULT: the agent is killed");
    mark_coordinator(c, node);
    sim_agent_gone(c, node);
    come_back(c, node);
    return true;
}

static bool agent_leave(struct sim *c, int node) {
    struct event ev = {.kind = EVENT_SIGNAL};
    struct sim_node *n = &c->nodes[node];
    if (!n->core || n->stopped_until_ns > c->now_ns)
        return false;
    sim_say(c, node, "FAULT: SIGTERM to the agent");
    if (c->judge.head.phase == HEAD_FORM)
        sim_mark(c, SIM_MARK_LEAVER_IN_FORM);
    n->signaled = true;
    ev.signal.signo = 15;
    sim_agent_event(c, node, &ev);
    come_back(c, node);
    return true;
}

static void on_woken(struct sim *c, struct occurrence *o) {
    if (c->nodes[o->node].core && c->judge.head.last_round > o->a)
        sim_mark(c, SIM_MARK_STOPPED_RETURNS);
}

static void stop_until(struct sim *c, int node, int64_t until_ns, bool guard) {
    struct sim_node *n = &c->nodes[node];
    sim_say(c, node, "FAULT: the agent%s stopped for %lld ms", guard ? " and its guard are" : " is",
            (long long)((until_ns - c->now_ns) / SIM_MS));
    if (until_ns > n->stopped_until_ns)
        n->stopped_until_ns = until_ns;
    if (guard && until_ns > n->guard_stopped_until_ns)
        n->guard_stopped_until_ns = until_ns;
    if (n->group.alive)
        sim_plan(c, until_ns, node, on_woken)->a = n->group.round;
}

static bool agent_stop(struct sim *c, int node) {
    if (!c->nodes[node].core)
        return false;
    stop_until(c, node, c->now_ns + sim_chance_ns(c, SIM_MS, 2500 * SIM_MS), false);
    return true;
}

/* Answers are lost, requests are not: what was asked for happens, and nobody hears of it. */
static bool answers_lost(struct sim *c, int node) {
    struct sim_node *n = &c->nodes[node];
    if (!n->core)
        return false;
    n->deaf_until_ns = c->now_ns + sim_chance_ns(c, SIM_MS, 1500 * SIM_MS);
    sim_say(c, node, "FAULT: no answer reaches the node for %lld ms",
            (long long)((n->deaf_until_ns - c->now_ns) / SIM_MS));
    return true;
}

static bool flapping(struct sim *c, int node) {
    struct sim_node *n = &c->nodes[node];
    sim_say(c, node, "FAULT: the node's network comes and goes");
    for (int i = 0; i < 3; i++)
        sim_cut_later(c, node, sim_chance_ns(c, 0, 2000 * SIM_MS),
                      sim_chance_ns(c, SIM_MS, 400 * SIM_MS));
    return n->core != NULL;
}

/* Every agent that is not there comes at once. */
static bool join_storm(struct sim *c, int node) {
    bool any = false;
    for (int i = 0; i < c->n_nodes; i++) {
        if (c->nodes[i].core)
            continue;
        sim_boot(c, i, sim_chance_ns(c, 0, 20 * SIM_MS));
        any = true;
    }
    if (any)
        sim_say(c, node, "FAULT: all agents that were away come at once");
    return any;
}

static bool node_cut(struct sim *c, int node) {
    struct sim_node *n = &c->nodes[node];
    n->cut_until_ns = c->now_ns + sim_chance_ns(c, SIM_MS, 2000 * SIM_MS);
    sim_say(c, node, "FAULT: the node is cut off for %lld ms",
            (long long)((n->cut_until_ns - c->now_ns) / SIM_MS));
    return n->core != NULL;
}

static bool node_poweroff(struct sim *c, int node) {
    if (!c->nodes[node].core && !c->nodes[node].group.alive)
        return false;
    sim_say(c, node, "FAULT: the node is powered off");
    mark_coordinator(c, node);
    sim_agent_gone(c, node);
    sim_machine_power_off(c, node);
    come_back(c, node);
    return true;
}

static bool node_stop(struct sim *c, int node) {
    if (!c->nodes[node].core)
        return false;
    stop_until(c, node, c->now_ns + sim_chance_ns(c, SIM_MS, 2500 * SIM_MS), true);
    return true;
}

static void away(struct sim *c, int64_t span_ns) {
    sim_mark(c,
             span_ns > c->timing.fence_ns ? SIM_MARK_STORE_AWAY_LONG : SIM_MARK_STORE_AWAY_SHORT);
    for (int i = 0; i < c->n_nodes; i++)
        c->nodes[i].cut_until_ns = c->now_ns + span_ns;
}

/* All at once: the store's own outage, a switch that reboots. */
static bool store_away(struct sim *c, int node) {
    int64_t span_ns = sim_chance_ns(c, SIM_MS, 1500 * SIM_MS);
    sim_say(c, node, "FAULT: nobody reaches the store for %lld ms", (long long)(span_ns / SIM_MS));
    away(c, span_ns);
    return true;
}

/* It comes back with its data, and knows no watch any more. */
static bool store_restart(struct sim *c, int node) {
    int64_t span_ns = sim_chance_ns(c, 10 * SIM_MS, 1900 * SIM_MS);
    sim_say(c, node, "FAULT: the store restarts, %lld ms", (long long)(span_ns / SIM_MS));
    away(c, span_ns);
    for (int i = 0; i < c->n_nodes; i++)
        for (int k = 0; k < WATCH_SLOTS; k++)
            sim_stream_break(c, i, (enum watch_slot)k);
    return true;
}

static bool watch_lost(struct sim *c, int node) {
    if (!c->nodes[node].core)
        return false;
    sim_stream_break(c, node, (enum watch_slot)rand_below(&c->rand, WATCH_SLOTS));
    return true;
}

static bool worker_fail(struct sim *c, int node) {
    bool lives = c->nodes[node].group.alive && !c->nodes[node].group.stopping;
    sim_machine_fail_worker(c, node);
    return lives;
}

static const struct sim_fault table[SIM_FAULTS_N] = {
    {"agent-kill", "an agent is killed; its guard ends the workers", 1},
    {"agent-leave", "an agent is told to leave (SIGTERM)", 1},
    {"agent-stop", "an agent is stopped for a while, its guard is not", 1},
    {"answers-lost", "requests are applied, their answers lost", 1},
    {"flapping", "a node's network comes and goes", 1},
    {"join-storm", "all agents that are away come at once", 1},
    {"node-cut", "a node is cut off from the store", 2},
    {"node-poweroff", "a node and all on it is gone", 1},
    {"node-stop", "an agent and its guard are stopped for a while", 1},
    {"store-away", "nobody reaches the store for a while", 1},
    {"store-restart", "the store restarts with its data, all watches are gone", 1},
    {"watch-lost", "a watch breaks", 1},
    {"worker-fail", "a worker exits with 1; its peers may follow", 2},
};

static bool (*const strikes[SIM_FAULTS_N])(struct sim *c, int node) = {
    agent_kill,    agent_leave, agent_stop, answers_lost,  flapping,   join_storm, node_cut,
    node_poweroff, node_stop,   store_away, store_restart, watch_lost, worker_fail};

const struct sim_fault *sim_faults(void) {
    return table;
}

int sim_fault_find(const char *name) {
    for (int i = 0; i < SIM_FAULTS_N; i++)
        if (str_eq(table[i].name, name))
            return i;
    return -1;
}

/* One of the kinds, by their weights. */
void sim_fault_strike(struct sim *c, int node) {
    int at = 0;
    if (c->frozen) {
        c->result->faults += node_stop(c, node);
        return;
    }
    if (!c->weights_sum)
        return;
    for (int64_t left = (int64_t)rand_below(&c->rand, (uint64_t)c->weights_sum);
         (left -= c->weights[at]) >= 0;)
        at++;
    c->result->faults += strikes[at](c, node);
}

/* In swarm mode a seed has its own mixture: the bugs that need a certain fault to be absent. */
void sim_faults_draw(struct sim *c) {
    for (int i = 0; i < SIM_FAULTS_N; i++) {
        c->weights[i] = c->config.swarm && sim_chance(c, 500) ? 0 : c->config.weights[i];
        c->weights_sum += c->weights[i];
    }
}
