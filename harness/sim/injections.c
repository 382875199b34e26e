#include "harness/sim/injections.h"

/* What strikes agents, nodes and workers. */

static void come_back(struct sim *c, int node, const struct sim_entry *e) {
    if (e->back_ns)
        sim_boot(c, node, e->back_ns);
}

static void mark_coordinator(struct sim *c, int node) {
    if (c->judge.head.phase == HEAD_FORM && c->nodes[node].leads)
        sim_mark(c, SIM_MARK_COORDINATOR_GONE);
}

bool inject_agent_kill(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core)
        return false;
    sim_say(c, node, "FAULT: the agent is killed");
    mark_coordinator(c, node);
    sim_agent_gone(c, node);
    come_back(c, node, e);
    return true;
}

bool inject_agent_leave(struct sim *c, int node, const struct sim_entry *e) {
    struct event ev = {.kind = EVENT_SIGNAL};
    struct sim_node *n = &c->nodes[node];
    if (!n->core || n->shown.stopped_until_ns > c->now_ns)
        return false;
    sim_say(c, node, "FAULT: SIGTERM to the agent");
    if (c->judge.head.phase == HEAD_FORM)
        sim_mark(c, SIM_MARK_LEAVER_IN_FORM);
    n->shown.signaled++;
    ev.signal.signo = 15;
    sim_agent_event(c, node, &ev);
    come_back(c, node, e);
    return true;
}

/* A job of the same name that was submitted again: what ran on the node is gone. */
bool inject_agent_other(struct sim *c, int node, const struct sim_entry *e) {
    sim_say(c, node, "FAULT: an agent of another attempt comes");
    mark_coordinator(c, node);
    sim_agent_gone(c, node);
    c->nodes[node].other = true;
    c->judge.others |= !c->unnamed;
    sim_boot(c, node, 0);
    return true;
}

bool inject_agent_start(struct sim *c, int node, const struct sim_entry *e) {
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
    if (until_ns > n->shown.stopped_until_ns)
        n->shown.stopped_until_ns = until_ns;
    if (guard && until_ns > n->guard_stopped_until_ns)
        n->guard_stopped_until_ns = until_ns;
    if (n->shown.group.alive)
        sim_plan(c, until_ns, node, on_woken)->a = n->shown.group.round;
}

bool inject_agent_stop(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core)
        return false;
    stop_until(c, node, c->now_ns + e->span_ns, false);
    return true;
}

/* Every agent that is not there comes at once. */
bool inject_join_storm(struct sim *c, int node, const struct sim_entry *e) {
    bool any = false;
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

/* One after another, closer together and further apart than a coordinator waits for the next. */
bool inject_join_trickle(struct sim *c, int node, const struct sim_entry *e) {
    int64_t after_ns = 0;
    for (int i = 0; i < c->n_nodes; i++) {
        if (c->nodes[i].core)
            continue;
        after_ns += sim_chance_ns(&c->nodes[i].body, SIM_MS, 3 * SIM_ADMIT_NS);
        sim_boot(c, i, after_ns);
    }
    if (after_ns)
        sim_say(c, node, "FAULT: all agents that were away come, one after another");
    return after_ns;
}

bool inject_node_poweroff(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core && !c->nodes[node].shown.group.alive)
        return false;
    sim_say(c, node, "FAULT: the node is powered off");
    mark_coordinator(c, node);
    history_writer_switched_off(c, node);
    sim_lifeline_power_off(c, node);
    sim_agent_gone(c, node);
    sim_machine_power_off(c, node);
    come_back(c, node, e);
    return true;
}

bool inject_guard_kill(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core || !sim_machine_kill_guard(c, node))
        return false;
    sim_say(c, node, "FAULT: the guard is killed, and its workers with it");
    return true;
}

bool inject_lifeline_reset(struct sim *c, int node, const struct sim_entry *e) {
    if (!sim_lifeline_reset(c, node))
        return false;
    sim_say(c, node, "FAULT: the node's lifeline is reset on its way");
    return true;
}

/* As inject_node_poweroff, but the kernel and the network are there to send a FIN. */
bool inject_node_kill(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core && !c->nodes[node].shown.group.alive)
        return false;
    sim_say(c, node, "FAULT: all processes of the node are killed");
    mark_coordinator(c, node);
    sim_agent_gone(c, node);
    c->nodes[node].guard_stopped_until_ns = 0; /* the next one is another process */
    sim_machine_kill_guard(c, node);
    come_back(c, node, e);
    return true;
}

static void crash(struct sim *c, struct occurrence *o) {
    struct sim_node *n = &c->nodes[o->node];
    if (c->calm_now || n->crashes_until_ns <= c->now_ns || !n->core)
        return;
    sim_say(c, o->node, "all processes of the node are killed again");
    mark_coordinator(c, o->node);
    sim_agent_gone(c, o->node);
    n->guard_stopped_until_ns = 0;
    sim_machine_kill_guard(c, o->node);
    history_writer_crashed(c, o->node);
    sim_boot(c, o->node, sim_chance_ns(&n->body, SIM_MS, 20 * SIM_MS));
}

void sim_crash_soon(struct sim *c, int node) {
    struct sim_node *n = &c->nodes[node];
    if (n->crashes_until_ns > c->now_ns)
        sim_plan(c, c->now_ns + sim_chance_ns(&n->body, 1, 20 * SIM_MS), node, crash);
}

/* Its workers take all of their node with them, and something starts its agent again. */
bool inject_node_crashes(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    if (!n->core)
        return false;
    sim_say(c, node, "FAULT: the node is killed whenever its workers begin, for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    n->crashes_until_ns = c->now_ns + e->span_ns;
    sim_plan(c, c->now_ns, node, crash);
    return true;
}

/* The coordinator and this node, at the same moment. */
bool inject_lost_together(struct sim *c, int node, const struct sim_entry *e) {
    int lead = -1;
    for (int i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].core && c->nodes[i].leads)
            lead = i;
    if (lead < 0 || lead == node || !c->nodes[node].core)
        return false;
    return inject_node_poweroff(c, lead, e) && inject_node_poweroff(c, node, e);
}

bool sim_in_rack(int nodes, int node, int other) {
    int size = (nodes + 2) / 3;
    return node / size == other / size;
}

/* What hangs on one switch, or on one supply. */
bool inject_rack_cut(struct sim *c, int node, const struct sim_entry *e) {
    bool any = false;
    for (int i = 0; i < c->n_nodes; i++)
        if (sim_in_rack(c->n_nodes, node, i))
            any |= inject_node_cut(c, i, e);
    return any;
}

bool inject_rack_poweroff(struct sim *c, int node, const struct sim_entry *e) {
    bool any = false;
    for (int i = 0; i < c->n_nodes; i++)
        if (sim_in_rack(c->n_nodes, node, i)) {
            any |= c->nodes[i].core != NULL;
            inject_node_poweroff(c, i, e);
        }
    return any;
}

bool inject_node_stop(struct sim *c, int node, const struct sim_entry *e) {
    if (!c->nodes[node].core)
        return false;
    stop_until(c, node, c->now_ns + e->span_ns, true);
    return true;
}

bool inject_worker_stuck(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    if (!n->shown.group.alive)
        return false;
    n->stuck_until_ns = c->now_ns + e->span_ns;
    sim_say(c, node, "FAULT: a worker cannot be reaped for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    return true;
}

bool inject_worker_fail(struct sim *c, int node, const struct sim_entry *e) {
    bool lives = c->nodes[node].shown.group.alive && !c->nodes[node].group.stopping;
    sim_machine_fail_worker(c, node);
    return lives;
}

bool inject_node_freeze(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    if (!n->core)
        return false;
    stop_until(c, node, c->now_ns + e->span_ns, true);
    sim_say(c, node, "FAULT: and its workers");
    if (c->now_ns + e->span_ns > n->frozen_until_ns)
        n->frozen_until_ns = c->now_ns + e->span_ns;
    return true;
}

/* As on a machine that is shared with too many: each second anew. */
static void halt(struct sim *c, struct occurrence *o) {
    struct sim_node *n = &c->nodes[o->node];
    int64_t until_ns = c->now_ns + n->halt_ns;
    if (c->calm_now || n->halts_until_ns <= c->now_ns)
        return;
    if (n->core)
        stop_until(c, o->node, until_ns, true);
    if (until_ns > n->frozen_until_ns)
        n->frozen_until_ns = until_ns;
    sim_plan(c, c->now_ns + 1000 * SIM_MS, o->node, halt);
}

bool inject_node_halts(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    bool halts = n->halts_until_ns > c->now_ns;
    if (!n->core)
        return false;
    if (c->now_ns + e->span_ns > n->halts_until_ns)
        n->halts_until_ns = c->now_ns + e->span_ns;
    n->halt_ns = sim_chance_ns(&n->body, 500, 800) * SIM_MS;
    sim_say(c, node, "FAULT: the node stands still for %lld ms of each second, for %lld ms",
            (long long)(n->halt_ns / SIM_MS), (long long)(e->span_ns / SIM_MS));
    if (!halts)
        sim_plan(c, c->now_ns, node, halt);
    return true;
}

bool inject_leave_storm(struct sim *c, int node, const struct sim_entry *e) {
    int left = 0;
    for (int i = 0; i < c->n_nodes; i++)
        left += i != node && inject_agent_leave(c, i, e);
    return left > 0;
}

/* Between the slowest and the fastest that the protocol allows for. */
bool inject_clock_rate(struct sim *c, int node, const struct sim_entry *e) {
    struct sim_node *n = &c->nodes[node];
    sim_clock_rate(c, node, 0.991 + (double)sim_chance_ns(&n->body, 0, 1800) / 100000.0);
    sim_say(c, node, "FAULT: the clock goes at %.5f", n->rate);
    return n->core != NULL;
}

bool inject_clock_stall(struct sim *c, int node, const struct sim_entry *e) {
    sim_say(c, node, "FAULT: the monotonic clock stands still for %lld ms",
            (long long)(e->span_ns / SIM_MS));
    sim_clock_stall(c, node, e->span_ns);
    return c->nodes[node].core != NULL;
}
