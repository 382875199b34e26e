/* chronicle: a simulated run as a history, in the form in which the harness records a live one, so
 * that the live judge, which knows nothing of the simulator, can judge it and the reports draw it.
 *
 * It holds what the harness would have seen from outside: agents and workers that start and end,
 * what workers were told, faults in force, and their evidence. It is no clock: records carry
 * virtual time, a second later, because a stamp of 0 means "never".
 *
 * All functions take a NULL chronicle, and do nothing then: most runs have none. */
#pragma once

#include "harness/history/history.h"
#include "harness/sim/simulation.h"

struct chronicle_node {
    int64_t agent, workers[SIM_WORKERS]; /* pids; 0: none runs */
    int64_t last_agent, last_worker;     /* of the newest agent, the newest local rank 0 */
    int64_t killed_ns;                   /* when an agent was last killed there */
    bool up;
    bool owes_count; /* its agent has ended, what it left behind is to be counted */
};

struct chronicle_fault {
    bool struck, felt, healed;
    int node;         /* -1: all */
    int64_t until_ns; /* 0: nothing that lasts */
};

struct chronicle {
    struct history *history;
    int64_t last_pid;
    int starts, stuck,
        crashes; /* agents that came later; that gave up; that went with their node */
    struct chronicle_node *nodes;
    struct chronicle_fault *faults; /* one for each entry of the schedule, one for the network */
};

struct chronicle *chronicle_new(struct sim *c, struct history *h);
struct chronicle *chronicle_free(struct chronicle *k); /* returns NULL */
void chronicle_end(struct sim *c, bool over);

/* --- chronicle.c --- */
void chronicle_agent_start(struct sim *c, int node);
/* by_signal: of 0, it ended by itself, with that code. */
void chronicle_agent_end(struct sim *c, int node, int code, int by_signal);
void chronicle_switched_off(struct sim *c, int node); /* before all on it ends */
void chronicle_claim(struct sim *c, int node, const char *what, int64_t round);
void chronicle_workers_start(struct sim *c, int node, const struct round_spec *spec);
/* wait_status as of waitpid; one that has ended before stays as it was. */
void chronicle_worker_end(struct sim *c, int node, int local_rank, int wait_status);
void chronicle_workers_end(struct sim *c, int node, int wait_status);
struct json_writer *chronicle_record(struct sim *c, int64_t at_ns, enum source source,
                                     const char *kind, int node, int64_t pid);

/* --- chronicle_faults.c --- */
/* An entry of the schedule has struck. */
void chronicle_struck(struct sim *c, const struct sim_entry *e, int node);
/* An agent comes that was not there from the beginning: somebody has switched it on. */
void chronicle_joined(struct sim *c, int node);
/* A message from or to the node was lost: to a cut, or by chance. */
void chronicle_dropped(struct sim *c, int node);
/* An agent has ended that a fault was to end. */
void chronicle_agent_felt(struct sim *c, int node);
/* An agent ends because its workers cannot be reaped, whatever the others come to. */
void chronicle_gave_up(struct sim *c, int node);
void chronicle_crashed(struct sim *c, int node); /* with all of its node */
/* What has healed by itself by now. */
void chronicle_heal(struct sim *c, bool all);
