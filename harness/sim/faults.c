/* The table of faults, and when one strikes. */
#include "base/mem.h"
#include "harness/sim/history_writer.h"
#include "harness/sim/injections.h"

#include "base/str.h"
#include "faults/effect.h"

#include <stdlib.h>

/* The weights are what spawn_weigh says that a seed with the kind is worth of the decisions that few
 * reach, squared. Twice that: a node that is cut off and a worker that fails, on which the most
 * hangs. Less: a store that is set back, after which little is promised. */
#define X(name)                 [SIM_FAULT_##name]
#define SPAN(least_ms, most_ms) .span_least_ns = (least_ms)*SIM_MS, .span_most_ns = (most_ms)*SIM_MS
#define LIKE(set)               .effects = (set), .alike = true
#define CUTS                    .effects = EFFECT_PARTS_NETWORK
static const struct sim_fault table[SIM_FAULTS_N] = {
    X(AGENT_KILL) = {"agent-kill", "an agent is killed; its guard ends the workers", 10,
                     .on_node = true, .returns = true, LIKE(EFFECT_ENDS_AGENT | EFFECT_LOUD)},
    X(AGENT_LEAVE) = {"agent-leave", "an agent is told to leave (SIGTERM)", 17, .on_node = true,
                      .returns = true, LIKE(EFFECT_ASKS_TO_LEAVE | EFFECT_LOUD)},
    X(AGENT_OTHER) = {"agent-other", "a node's agent is replaced by one of another attempt", 17,
                      .on_node = true, LIKE(EFFECT_ENDS_AGENT | EFFECT_LOUD)},
    X(AGENT_START) = {"agent-start",
                      "an agent that is away comes; the first of its node comes so late", 7,
                      .on_node = true},
    X(AGENT_STOP) = {"agent-stop", "an agent is stopped for a while, its guard is not", 14,
                     SPAN(1, 2500), .on_node = true},
    X(ANSWERS_LATE) = {"answers-late", "answers and watch events come together, late", 11,
                       SPAN(1, 1500), .on_node = true},
    X(ANSWERS_LOST) = {"answers-lost", "requests are applied, their answers lost", 11,
                       SPAN(1, 1500), .on_node = true, CUTS},
    X(CLOCK_RATE) = {"clock-rate", "a node's clock goes at another rate from now on", 9,
                     .on_node = true},
    X(CLOCK_STALL) = {"clock-stall", "a node's CLOCK_MONOTONIC stands still for a while", 11,
                      SPAN(1, 1500), .on_node = true},
    X(FLAPPING) = {"flapping", "a node's network comes and goes", 10, SPAN(5, 2400),
                   .on_node = true, CUTS},
    X(GUARD_KILL) = {"guard-kill", "a guard is killed, and its workers with it", 9,
                     .on_node = true},
    X(JOIN_STORM) = {"join-storm", "all agents that are away come at once", 13},
    X(JOIN_TRICKLE) = {"join-trickle", "all agents that are away come, one shortly after another",
                       13},
    X(LEAVE_STORM) = {"leave-storm", "all agents but one are told to leave", 22, .on_node = true,
                      .returns = true, LIKE(EFFECT_ASKS_TO_LEAVE | EFFECT_LOUD)},
    X(LIFELINE_RESET) = {"lifeline-reset", "a node's lifeline is reset on its way", 9,
                         .on_node = true},
    X(LOST_TOGETHER) = {"lost-together", "the coordinator and another node are gone at once", 8,
                        .on_node = true, .returns = true,
                        .effects = EFFECT_ENDS_NODE | EFFECT_SILENCES_NODE | EFFECT_SILENT},
    X(NODE_CRASHES) = {"node-crashes",
                       "whenever a node's workers begin, all of it is killed and comes back", 11,
                       SPAN(500, 6000), .on_node = true},
    X(NODE_CUT) = {"node-cut", "a node is cut off from the store", 22, SPAN(1, 2000),
                   .on_node = true, LIKE(EFFECT_PARTS_NETWORK | EFFECT_SILENT | EFFECT_LASTING)},
    X(NODE_FREEZE) = {"node-freeze", "agent, guard and workers are stopped for a while", 16,
                      SPAN(1, 2500), .on_node = true,
                      LIKE(EFFECT_STALLS_NODE | EFFECT_SILENT | EFFECT_LASTING)},
    X(NODE_HALTS) = {"node-halts",
                     "a node stands still for more than half of each second, for a while", 13,
                     SPAN(2000, 8000), .on_node = true},
    X(NODE_KILL) = {"node-kill", "all processes of a node are killed, its network lives on", 9,
                    .on_node = true, .returns = true, LIKE(EFFECT_ENDS_NODE | EFFECT_LOUD)},
    X(NODE_POWEROFF) = {"node-poweroff", "a node and all on it is gone", 10, .on_node = true,
                        .returns = true,
                        LIKE(EFFECT_ENDS_NODE | EFFECT_SILENCES_NODE | EFFECT_SILENT)},
    X(NODE_STOP) = {"node-stop", "an agent and its guard are stopped for a while", 20,
                    SPAN(1, 2500), .on_node = true},
    X(RACK_CUT) = {"rack-cut",
                   "a third of the nodes, one behind another, is cut off from the store", 13,
                   SPAN(1, 2000), .on_node = true, CUTS},
    X(RACK_POWEROFF) = {"rack-poweroff", "a third of the nodes, one behind another, is gone", 8,
                        .on_node = true, .returns = true,
                        .effects = EFFECT_ENDS_NODE | EFFECT_SILENCES_NODE | EFFECT_SILENT},
    X(REQUESTS_LATE) = {"requests-late", "requests come together, late, their senders maybe gone",
                        11, SPAN(1, 2500), .on_node = true},
    X(REQUESTS_LOST) = {"requests-lost", "requests are lost, watch events are not", 11,
                        SPAN(1, 1500), .on_node = true, CUTS},
    X(STORE_AWAY) = {"store-away", "nobody reaches the store for a while", 14, SPAN(1, 1500), CUTS},
    X(STORE_COMPACT) = {"store-compact", "the store forgets every change at once", 10,
                        SPAN(1, 2000)},
    X(STORE_FULL) = {"store-full", "the store answers what is read, and writes nothing", 14,
                     SPAN(1, 12000)},
    X(STORE_LEADER) = {"store-leader", "the store elects a leader, all leases begin anew", 10,
                       SPAN(50, 1900), CUTS},
    X(STORE_RESTART) = {"store-restart", "the store restarts with its data, all watches are gone",
                        15, SPAN(10, 1900), CUTS},
    X(STORE_SET_BACK) = {"store-set-back",
                         "after a while the store restarts with the data that it has now", 3,
                         SPAN(50, 4000), CUTS},
    X(STORE_WIPED) = {"store-wiped", "the store restarts without its data", 19, SPAN(10, 1900),
                      CUTS},
    X(WATCH_LOST) = {"watch-lost", "a watch breaks", 9, .on_node = true, .on_watch = true},
    X(WATCH_STALLED) = {"watch-stalled", "a watch breaks, and nobody is told for a long time", 10,
                        SPAN(1, 25000), .on_node = true},
    X(WORKER_FAIL) = {"worker-fail", "a worker exits with 1; its peers may follow", 16,
                      .on_node = true, LIKE(EFFECT_ENDS_WORKER | EFFECT_OWN_EXIT | EFFECT_LOUD)},
    X(WORKER_STUCK) = {"worker-stuck", "workers in state D: SIGKILL acts, but none is reaped", 10,
                       SPAN(1, 15000), .on_node = true},
};

#undef X
#undef SPAN
#undef LIKE
#undef CUTS

#define X(NAME, name) [SIM_FAULT_##NAME] = inject_##name,
static bool (*const injections[])(struct sim *c, int node,
                                  const struct sim_entry *e) = {SIM_FAULTS(X)};
#undef X

const struct sim_fault *sim_faults(void) {
    return table;
}

int sim_fault_find(const char *name) {
    for (int i = 0; i < SIM_FAULTS_N; i++)
        if (str_eq(table[i].name, name))
            return i;
    return -1;
}

const char *sim_fault_live(enum sim_fault_kind fault) {
    return table[fault].alike ? fault_that(table[fault].effects) : NULL;
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
static void inject(struct sim *c, struct occurrence *o) {
    const struct sim_entry *e = &c->schedule->entries[o->a];
    if (c->calm_now && e->fault != SIM_FAULT_AGENT_START)
        return;
    int64_t until_ns = c->now_ns + e->span_ns;
    if (until_ns > c->times.struck_until_ns)
        c->times.struck_until_ns = until_ns;
    if (injections[e->fault](c, o->node, e)) {
        c->result->faults += e->fault != SIM_FAULT_AGENT_START;
        c->result->struck[e->fault] = true;
        history_writer_struck(c, e, o->node);
    }
}

static void on_time(struct sim *c, struct occurrence *o) {
    const struct sim_entry *e = &c->schedule->entries[o->a];
    if (e->after)
        c->armed[c->n_armed++] = (struct armed){e, e->after};
    else
        inject(c, o);
}

void sim_faults_plan(struct sim *c) {
    const struct sim_schedule *s = c->schedule;
    c->armed = mem_array(struct armed, (size_t)s->n_entries + 1);
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
        sim_plan(c, c->now_ns, whom, inject)->a = a.entry - c->schedule->entries;
    }
    c->n_armed = kept;
}
