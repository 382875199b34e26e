/* sim: the agents' real core (agent/core) in virtual time. A few rendezvous cores run against one
 * real store (agent/core/kv.c) under a seeded schedule of faults. Same seed, same run, everywhere.
 *
 * What is simulated: a network that delays, loses, delivers late and loses only the answers;
 * watches that break; clocks that differ in rate by up to 1 %; agents that crash, are stopped, cut
 * off, sent a signal, come back; guards with their two deadlines, also stopped ones; workers that
 * fail, hang, ignore SIGTERM or finish; a store that nobody reaches, or that restarts.
 *
 * A seed has two phases. In the first the faults of the schedule strike; what is judged after every
 * change are the invariants of safety (harness/invariants): I1 to I4, I6, I7, and the contract that
 * a certified session has no worker. Then everything heals, and within a minute of virtual time the
 * job must have ended as its workers decided (I5). */
#pragma once

#include "harness/sim/decisions.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_AGENTS_USUAL = 5,
    SIM_AGENTS_MAX = 10000,
    SIM_LEASE_S = 65, /* of a run whose agents are all gone, until the store has forgotten it */
};

/* What can happen to the agents and their store, in alphabetical order; the table is in faults.c.
 */
#define SIM_FAULTS(X)                                                                              \
    X(AGENT_KILL, agent_kill)                                                                      \
    X(AGENT_LEAVE, agent_leave)                                                                    \
    X(AGENT_OTHER, agent_other)                                                                    \
    X(AGENT_START, agent_start)                                                                    \
    X(AGENT_STOP, agent_stop)                                                                      \
    X(ANSWERS_LATE, answers_late)                                                                  \
    X(ANSWERS_LOST, answers_lost)                                                                  \
    X(CLOCK_RATE, clock_rate)                                                                      \
    X(CLOCK_STALL, clock_stall)                                                                    \
    X(FLAPPING, flapping)                                                                          \
    X(GUARD_KILL, guard_kill)                                                                      \
    X(JOIN_STORM, join_storm)                                                                      \
    X(JOIN_TRICKLE, join_trickle)                                                                  \
    X(LEAVE_STORM, leave_storm)                                                                    \
    X(LIFELINE_RESET, lifeline_reset)                                                              \
    X(LOST_TOGETHER, lost_together)                                                                \
    X(NODE_CRASHES, node_crashes)                                                                  \
    X(NODE_CUT, node_cut)                                                                          \
    X(NODE_FREEZE, node_freeze)                                                                    \
    X(NODE_HALTS, node_halts)                                                                      \
    X(NODE_KILL, node_kill)                                                                        \
    X(NODE_POWEROFF, node_poweroff)                                                                \
    X(NODE_STOP, node_stop)                                                                        \
    X(RACK_CUT, rack_cut)                                                                          \
    X(RACK_POWEROFF, rack_poweroff)                                                                \
    X(REQUESTS_LATE, requests_late)                                                                \
    X(REQUESTS_LOST, requests_lost)                                                                \
    X(STORE_AWAY, store_away)                                                                      \
    X(STORE_COMPACT, store_compact)                                                                \
    X(STORE_FULL, store_full)                                                                      \
    X(STORE_LEADER, store_leader)                                                                  \
    X(STORE_RESTART, store_restart)                                                                \
    X(STORE_SET_BACK, store_set_back)                                                              \
    X(STORE_WIPED, store_wiped)                                                                    \
    X(WATCH_LOST, watch_lost)                                                                      \
    X(WATCH_STALLED, watch_stalled)                                                                \
    X(WORKER_FAIL, worker_fail)                                                                    \
    X(WORKER_STUCK, worker_stuck)

#define X(NAME, name) SIM_FAULT_##NAME,
enum sim_fault_kind { SIM_FAULTS(X) SIM_FAULTS_N };
#undef X

struct sim_fault {
    const char *name, *text;
    int weight;                          /* how often it is drawn, against the others */
    int64_t span_least_ns, span_most_ns; /* how long it lasts; 0: over at once, or for good */
    bool on_node;                        /* it strikes one node; else all, or the store */
    bool returns;                        /* the node's agent may be started again */
    bool on_watch;                       /* it strikes one of the node's watches */
    unsigned effects; /* in the words of faults/effect.h, where they have words for it */
    bool alike;       /* there is a live fault of just these effects, and it does just this */
};
const struct sim_fault *sim_faults(void); /* SIM_FAULTS_N of them, in alphabetical order */
int sim_fault_find(const char *name);     /* its place in the table, -1: none */
/* The name of the live fault that is alike; NULL: none is. */
const char *sim_fault_live(enum sim_fault_kind fault);

/* What a schedule should sometimes reach: where nobody thought of looking. */
#define SIM_MARKS(X)                                                                               \
    X(ACK_REFUSED, "an ack arrives after its sender was certified dead, and is refused")           \
    X(AGENT_STUCK, "an agent whose workers cannot be reaped ends without a word")                  \
    X(ANSWER_LOST, "a transaction is applied and its answer lost")                                 \
    X(APPLIED_LATE, "a transaction is applied whose sender is gone")                               \
    X(BUDGET_SPENT, "a failure finds no restart left")                                             \
    X(CERTIFIED_UNDER_ACK, "a session is certified dead while its ack is under way")               \
    X(COORDINATOR_GONE, "the coordinator goes while a round is being formed")                      \
    X(COORDINATOR_UNHEARD, "a coordinator is gone before a watch has told of the head it wrote")   \
    X(DONE_TWICE_FORMED, "a round is formed again after its workers had begun to succeed")         \
    X(EVICTED, "an agent that beats and does not ack is evicted")                                  \
    X(FENCED, "a guard ends workers because the fence has passed")                                 \
    X(FREE_ROUNDS_SPENT, "a node is lost, and no round without cost is left in this hour")         \
    X(GANG_CLOSED, "the loss of a node ends a job that runs all or nothing")                       \
    X(GUARD_FAILED, "a guard is killed by somebody, and that is charged as a failure")             \
    X(GUARD_TIMER, "the kernel's timer ends a stopped guard and its workers")                      \
    X(LATE_JOINER, "a round grows by a node that came later")                                      \
    X(LEAVER_IN_FORM, "an agent is told to leave while a round is being formed")                   \
    X(LIFELINE_CERTIFIED, "the end of a lifeline certifies a session")                             \
    X(LIFELINE_REFUSED, "the end of a lifeline comes after that of its session")                   \
    X(LIFELINE_RESET, "a lifeline is reset while workers hold it")                                 \
    X(LIFELINE_UNHEARD, "the end of a lifeline never reaches the store")                           \
    X(LOST_AND_FAILED, "a round loses a node and has a failed worker: no restart is charged")      \
    X(ROUNDS_APART, "rounds without cost end at once, again and again: the next one waits")        \
    X(SPARE_PROMOTED, "a waiting spare takes the place of a lost node")                            \
    X(STANDBY_TAKEN, "an agent started as a spare becomes a member")                               \
    X(STOPPED_RETURNS, "a stopped agent wakes after its round was over")                           \
    X(STORE_AWAY_LONG, "the store is away for longer than the fence")                              \
    X(STORE_AWAY_SHORT, "the store is away for less than the fence")                               \
    X(STORE_FULL_LONG, "a store takes no writes until an agent gives it up")                       \
    X(STORE_OUTLIVED, "workers live on while a store that lost its data forms a round")            \
    X(STORE_REMINDED, "agents bring the restarts to a store that lost its data")                   \
    X(STORE_SET_BACK, "an agent is shown less of its run than it knew: the store was set back")    \
    X(TWO_LEADERS, "an agent leads while an earlier leader still believes it does")                \
    X(STANDBY_SUCCESSOR, "a standby revokes another lost node right after taking over")            \
    X(WATCH_COMPACTED, "the store has forgotten what a watch had still to tell")                   \
    X(WATCH_LOST, "a watch is lost with changes under way")

#define X(name, text) SIM_MARK_##name,
enum sim_mark { SIM_MARKS(X) SIM_MARKS_N };
#undef X
const char *sim_mark_text(enum sim_mark m);

struct sim_config {
    uint64_t seed;
    int agents;         /* so many, in calm all in one round; 0: chance decides, 1 to 5 */
    int64_t trouble_ns; /* how long faults strike, virtual; 0: chance, half a second to four */
    int faults_mean;    /* faults in that time, on average */
    int weights[SIM_FAULTS_N];
    bool swarm;  /* every seed leaves some kinds of faults out */
    bool varies; /* some are of another kind: large, long, quiet, or of two attempts (draw.c) */
    bool calm;   /* no fault at all, and a network without loss */
    bool frozen; /* nothing but agents that are stopped, with answers that take nearly hb */
    bool plain;  /* no seed counts restarts by the node, or bounds the rounds without cost */
    bool trace;  /* print every event */
};
/* Chance decides, five faults, with the weights of the table. */
void sim_config_default(struct sim_config *ret);

enum sim_outcome { SIM_NONE, SIM_SUCCEEDED, SIM_FAILED };

struct sim_result {
    bool violated;
    char text[512];    /* which invariant, and how */
    int64_t ended_ns;  /* virtual */
    int64_t steady_ns; /* the first round ran; 0: none did */
    int64_t steps;     /* of all cores together */
    int64_t rounds;    /* that were completed */
    int64_t faults;    /* that struck */
    int64_t transactions;
    enum sim_outcome outcome;
    enum sim_outcome recorded; /* of what was recorded: the first job, where nothing is violated */
    bool marks[SIM_MARKS_N];
    bool struck[SIM_FAULTS_N];
    uint64_t decisions[DECISION_WORDS]; /* by their place */
    uint64_t risked; /* invariants, by their place, of which something was asked */
};

/* Draws the schedule of config's seed and plays it. */
void sim_run(const struct sim_config *config, struct sim_result *ret);
