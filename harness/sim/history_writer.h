/* history_writer: a simulated run as a history, in the form in which the harness records a live
 * one, so that the live judge, which knows nothing of the simulator, can judge it and the reports
 * draw it.
 *
 * It holds what the harness would have seen from outside: agents and workers that start and end,
 * what workers were told, faults in force, and their evidence. It is no clock: records carry
 * virtual time, a second later, because a stamp of 0 means "never".
 *
 * All functions take a NULL history_writer, and do nothing then: most runs have none. */
#pragma once

#include "harness/history/history.h"
#include "harness/sim/simulation.h"

struct history_writer_node {
    int64_t agent, workers[SIM_WORKERS]; /* pids; 0: none runs */
    int64_t last_agent, last_worker;     /* of the newest agent, the newest local rank 0 */
    int64_t killed_ns;                   /* when an agent was last killed there */
    bool up;
    bool owes_count; /* its agent has ended, what it left behind is to be counted */
};

struct history_writer_fault {
    bool struck, felt, healed;
    int node;         /* -1: all */
    int64_t until_ns; /* 0: nothing that lasts */
};

struct history_writer {
    struct history *history;
    int64_t last_pid;
    int starts, stuck,
        crashes; /* agents that came later; that gave up; that went with their node */
    struct history_writer_node *nodes;
    /* One for each entry of the schedule, one for the network. */
    struct history_writer_fault *faults;
};

struct history_writer *history_writer_new(struct sim *c, struct history *h);
struct history_writer *history_writer_free(struct history_writer *k); /* returns NULL */
void history_writer_end(struct sim *c, bool over);

/* --- history_writer.c --- */
void history_writer_agent_start(struct sim *c, int node);
/* by_signal: of 0, it ended by itself, with that code. */
void history_writer_agent_end(struct sim *c, int node, int code, int by_signal);
void history_writer_switched_off(struct sim *c, int node); /* before all on it ends */
void history_writer_claim(struct sim *c, int node, const char *what, int64_t round);
void history_writer_workers_start(struct sim *c, int node, const struct round_spec *spec);
/* wait_status as of waitpid; one that has ended before stays as it was. */
void history_writer_worker_end(struct sim *c, int node, int local_rank, int wait_status);
void history_writer_workers_end(struct sim *c, int node, int wait_status);
struct json_writer *history_writer_record(struct sim *c, int64_t at_ns, enum source source,
                                          const char *kind, int node, int64_t pid);

/* --- history_writer_faults.c --- */
/* An entry of the schedule has struck. */
void history_writer_struck(struct sim *c, const struct sim_entry *e, int node);
/* An agent comes that was not there from the beginning: somebody has switched it on. */
void history_writer_joined(struct sim *c, int node);
/* A message from or to the node was lost: to a cut, or by chance. */
void history_writer_dropped(struct sim *c, int node);
/* An agent has ended that a fault was to end. */
void history_writer_agent_felt(struct sim *c, int node);
/* An agent ends because its workers cannot be reaped, whatever the others come to. */
void history_writer_gave_up(struct sim *c, int node);
void history_writer_crashed(struct sim *c, int node); /* with all of its node */
/* What has healed by itself by now. */
void history_writer_heal(struct sim *c, bool all);
