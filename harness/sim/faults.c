#include "harness/sim/simulation.h"

#include "agent/base/str.h"

#include <stdlib.h>

/* What strikes agents and store. A fault finds the world as it is: where there is nothing for it to
 * strike, it has not happened (false). */

static void come_back(struct sim *c, int node, const struct sim_entry *e) {
    if (e->back_ns)
        sim_boot(c, node, e->back_ns);
}

static void mark_coordinator(struct sim *c, int node) {
    if (c->judge.head.phase == HEAD_FORM && c->nodes[node].leads)
        sim_mark(c, SIM_MARK_COORDINATOR_GONE);
}

static bool agent_kill(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core)
        return false;
    sim_say(c, node, "FAULT: the agent is killed");
    mark_coordinator(c, node);
    sim_agent_gone(c, node);
    come_back(c, node, e);
    return true;
}

static bool agent_leave(struct sim *c, int node, const struct sim_entry *e) {
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
    come_back(c, node, e);
    return true;
}

static bool agent_start(struct sim *c, int node, const struct sim_entry *e) {
    (void)e;
    if (c->nodes[node].core)
        return false;
    sim_boot(c, node, 0);
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

static bool agent_stop(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core)
        return false;
    stop_until(c, node, c->now_ns + e->span_ns, false);
    return true;
}

/* Answers are lost, requests are not: what was asked for happens, and nobody hears of it. */
static bool answers_lost(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    if (!n->core)
        return false;
    n->deaf_until_ns = c->now_ns + e->span_ns;
    sim_say(c, node, "FAULT: no answer reaches the node for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    return true;
}

/* Gone three times, and there twice in between. */
static bool flapping(struct sim *c, int node, const struct sim_entry *e) {
    sim_say(c, node, "FAULT: the node's network comes and goes for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    for (int i = 0; i < 3; i++)
        sim_cut_later(c, node, 2 * i * (e->span_ns / 5), e->span_ns / 5);
    return c->nodes[node].core != NULL;
}

/* Every agent that is not there comes at once. */
static bool join_storm(struct sim *c, int node, const struct sim_entry *e) {
    bool any = false;
    (void)e;
    for (int i = 0; i < c->n_nodes; i++) {
        if (c->nodes[i].core)
            continue;
        sim_boot(c, i, sim_chance_ns(&c->nodes[i].body, 0, 20 * SIM_MS));
        any = true;
    }
    if (any)
        sim_say(c, node, "FAULT: all agents that were away come at once");
    return any;
}

static bool node_cut(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    n->cut_until_ns = c->now_ns + e->span_ns;
    sim_say(c, node, "FAULT: the node is cut off for %lld ms", (long long)(e->span_ns / SIM_MS));
    return n->core != NULL;
}

static bool node_poweroff(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core && !c->nodes[node].group.alive)
        return false;
    sim_say(c, node, "FAULT: the node is powered off");
    mark_coordinator(c, node);
    sim_agent_gone(c, node);
    sim_machine_power_off(c, node);
    come_back(c, node, e);
    return true;
}

/* The coordinator and this node, at the same moment. */
static bool lost_together(struct sim *c, int node, const struct sim_entry *e) {
    int lead = -1;
    for (int i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].core && c->nodes[i].leads)
            lead = i;
    if (lead < 0 || lead == node || !c->nodes[node].core)
        return false;
    return node_poweroff(c, lead, e) && node_poweroff(c, node, e);
}

static bool node_stop(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core)
        return false;
    stop_until(c, node, c->now_ns + e->span_ns, true);
    return true;
}

static void away(struct sim *c, int64_t span_ns) {
    sim_mark(c,
             span_ns > c->timing.fence_ns ? SIM_MARK_STORE_AWAY_LONG : SIM_MARK_STORE_AWAY_SHORT);
    for (int i = 0; i < c->n_nodes; i++)
        c->nodes[i].cut_until_ns = c->now_ns + span_ns;
}

/* All at once: the store's own outage, a switch that reboots. */
static bool store_away(struct sim *c, int node, const struct sim_entry *e) {
    sim_say(c, node, "FAULT: nobody reaches the store for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    away(c, e->span_ns);
    return true;
}

/* It comes back with its data, and knows no watch any more. */
static bool store_restart(struct sim *c, int node, const struct sim_entry *e) {
    sim_say(c, node, "FAULT: the store restarts, %lld ms", (long long)(e->span_ns / SIM_MS));
    away(c, e->span_ns);
    for (int i = 0; i < c->n_nodes; i++)
        for (int k = 0; k < WATCH_SLOTS; k++)
            sim_stream_break(c, i, (enum watch_slot)k);
    return true;
}

static bool watch_lost(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core)
        return false;
    sim_stream_break(c, node, (enum watch_slot)e->watch);
    return true;
}

/* A connection whose other end is gone, which the kernel finds out by its keepalive only. */
static bool watch_stalled(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    if (!n->core)
        return false;
    sim_say(c, node, "FAULT: the watch of head says nothing more");
    sim_stream_stall(c, node, WATCH_HEAD, e->span_ns);
    return true;
}

static bool worker_stuck(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    if (!n->group.alive)
        return false;
    n->stuck_until_ns = c->now_ns + e->span_ns;
    sim_say(c, node, "FAULT: a worker cannot be reaped for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    return true;
}

static bool worker_fail(struct sim *c, int node, const struct sim_entry *e) {
    (void)e;
    bool lives = c->nodes[node].group.alive && !c->nodes[node].group.stopping;
    sim_machine_fail_worker(c, node);
    return lives;
}

#define X(name)                 [SIM_FAULT_##name]
#define SPAN(least_ms, most_ms) .span_least_ns = (least_ms)*SIM_MS, .span_most_ns = (most_ms)*SIM_MS
static const struct sim_fault table[SIM_FAULTS_N] = {
    X(AGENT_KILL) = {"agent-kill", "an agent is killed; its guard ends the workers", 1,
                     .on_node = true, .returns = true},
    X(AGENT_LEAVE) = {"agent-leave", "an agent is told to leave (SIGTERM)", 1, .on_node = true,
                      .returns = true},
    X(AGENT_START) = {"agent-start",
                      "an agent that is away comes; the first of its node comes so late", 1,
                      .on_node = true},
    X(AGENT_STOP) = {"agent-stop", "an agent is stopped for a while, its guard is not", 1,
                     SPAN(1, 2500), .on_node = true},
    X(ANSWERS_LOST) = {"answers-lost", "requests are applied, their answers lost", 1, SPAN(1, 1500),
                       .on_node = true},
    X(FLAPPING) = {"flapping", "a node's network comes and goes", 1, SPAN(5, 2400),
                   .on_node = true},
    X(JOIN_STORM) = {"join-storm", "all agents that are away come at once", 1},
    X(LOST_TOGETHER) = {"lost-together", "the coordinator and another node are gone at once", 1,
                        .on_node = true, .returns = true},
    X(NODE_CUT) = {"node-cut", "a node is cut off from the store", 2, SPAN(1, 2000),
                   .on_node = true},
    X(NODE_POWEROFF) = {"node-poweroff", "a node and all on it is gone", 1, .on_node = true,
                        .returns = true},
    X(NODE_STOP) = {"node-stop", "an agent and its guard are stopped for a while", 1, SPAN(1, 2500),
                    .on_node = true},
    X(STORE_AWAY) = {"store-away", "nobody reaches the store for a while", 1, SPAN(1, 1500)},
    X(STORE_RESTART) = {"store-restart", "the store restarts with its data, all watches are gone",
                        1, SPAN(10, 1900)},
    X(WATCH_LOST) = {"watch-lost", "a watch breaks", 1, .on_node = true, .on_watch = true},
    X(WATCH_STALLED) = {"watch-stalled", "a watch breaks, and nobody is told for a long time", 1,
                        SPAN(1, 25000), .on_node = true},
    X(WORKER_FAIL) = {"worker-fail", "a worker exits with 1; its peers may follow", 2,
                      .on_node = true},
    X(WORKER_STUCK) = {"worker-stuck", "workers in state D: SIGKILL acts, but none is reaped", 1,
                       SPAN(1, 15000), .on_node = true},
};

static bool (*const strikes[])(struct sim *c, int node, const struct sim_entry *e) = {
    X(AGENT_KILL) = agent_kill,       X(AGENT_LEAVE) = agent_leave,
    X(AGENT_START) = agent_start,     X(AGENT_STOP) = agent_stop,
    X(ANSWERS_LOST) = answers_lost,   X(FLAPPING) = flapping,
    X(JOIN_STORM) = join_storm,       X(NODE_CUT) = node_cut,
    X(NODE_POWEROFF) = node_poweroff, X(NODE_STOP) = node_stop,
    X(STORE_AWAY) = store_away,       X(STORE_RESTART) = store_restart,
    X(WATCH_LOST) = watch_lost,       X(WORKER_FAIL) = worker_fail,
    X(LOST_TOGETHER) = lost_together, X(WATCH_STALLED) = watch_stalled,
    X(WORKER_STUCK) = worker_stuck,
};
#undef X
#undef SPAN

const struct sim_fault *sim_faults(void) {
    return table;
}

int sim_fault_find(const char *name) {
    for (int i = 0; i < SIM_FAULTS_N; i++)
        if (str_eq(table[i].name, name))
            return i;
    return -1;
}

const char *const *sim_watches(void) {
    static const char *const names[] = {[WATCH_HEAD] = "head",
                                        [WATCH_LEAD] = "lead",
                                        [WATCH_HOLDER] = "holder",
                                        [WATCH_ALL] = "all",
                                        [WATCH_SLOTS] = NULL};
    return names;
}

/* --- when --- */

/* When all has healed, nothing strikes any more; who was to come may still come. */
static void strike(struct sim *c, struct occurrence *o) {
    const struct sim_entry *e = &c->schedule->entries[o->a];
    if (!c->calm_now || e->fault == SIM_FAULT_AGENT_START)
        c->result->faults += strikes[e->fault](c, o->node, e);
}

static void on_time(struct sim *c, struct occurrence *o) {
    const struct sim_entry *e = &c->schedule->entries[o->a];
    if (e->after)
        c->armed[c->n_armed++] = (struct armed){e, e->after};
    else
        strike(c, o);
}

void sim_faults_plan(struct sim *c) {
    const struct sim_schedule *s = c->schedule;
    c->armed = calloc((size_t)s->n_entries + 1, sizeof(*c->armed));
    if (!c->armed)
        abort(); /* out of memory */
    for (int i = s->n_entries - 1; i >= 0; i--)
        if (s->entries[i].node >= 0)
            c->nodes[s->entries[i].node].late = s->entries[i].fault == SIM_FAULT_AGENT_START;
    for (int i = 0; i < s->n_entries; i++) {
        const struct sim_entry *e = &s->entries[i];
        sim_plan(c, e->at_ns, e->node < 0 ? 0 : e->node, on_time)->a = i;
    }
}

/* It strikes as the next thing: nobody has heard of the transaction. */
void sim_faults_applied(struct sim *c, int node) {
    int kept = 0;
    for (int i = 0; i < c->n_armed; i++) {
        struct armed a = c->armed[i];
        if (--a.left) {
            c->armed[kept++] = a;
            continue;
        }
        int whom = a.entry->node == SIM_NODE_WRITER ? node : a.entry->node < 0 ? 0 : a.entry->node;
        sim_plan(c, c->now_ns, whom, strike)->a = a.entry - c->schedule->entries;
    }
    c->n_armed = kept;
}
