/* rounds: workers and rounds as seen from outside.
 *
 * Built from a history record by record, live and offline by the same code. A worker start
 * (rankprobe's) belongs to the newest round that lacks its RANK and agrees in WORLD_SIZE, run id,
 * MASTER_ADDR, MASTER_PORT and (strict) restart count; else it opens the next. So it does where
 * these agree in all rounds and its node or agent shows that the round is an older one: when the
 * node has had a worker in a newer round of these; when its agent was started after it had one in
 * this round, or after a newer round of these had begun, or (not strict: torchrun's agents meet
 * first) after this round had. Rounds count from 1; one is complete when all WORLD_SIZE workers
 * have started. Stamps are 0 when the thing was not seen.
 *
 * A start that names a worker it is `below` is that of a rank which the job has started itself. The
 * worker above has only started others: it is their host, and from then on no worker and in no
 * round; a round that has no other workers is none, and those behind it count one less. */
#pragma once

#include "harness/history/history.h"

/* Of a worker, by how much they may be off. */
enum worker_moment {
    WORKER_STARTS,
    WORKER_READY,
    WORKER_RESUMES,
    WORKER_STEPS, /* for the first time */
    WORKER_ENDS,
    WORKER_MOMENTS_N
};

struct worker {
    const char *node;
    int64_t pid;
    int rank, local_rank, group_rank, role_rank; /* -1: not given */
    int world_size, local_world_size, role_world_size, group_world_size;
    int restart_count, max_restarts;
    const char *role, *master_addr, *master_port, *run_id; /* "" when not given */
    const struct json *env;
    int round;             /* 1.. */
    size_t index;          /* its place among all workers */
    struct worker *former; /* the one before it that had its pid, NULL: none */
    int64_t start_ns, exec_ns, exit_ns;
    bool exit_known; /* code or signal is known */
    int exit_code, exit_signal;
    int64_t ready_ns, resume_ns, first_step_ns, last_step_ns, done_ns;
    int64_t resume_step;           /* -1: none seen */
    int64_t first_step, last_step; /* the first that it told, the highest; -1: none */
    const char *model;             /* of its done event, "" */
    int64_t lost_events;
    int64_t bound_ns[WORKER_MOMENTS_N]; /* where its host has a clock of its own; else 0 */
    int64_t start_seq, exit_seq;        /* records that prove it */
    bool spawned;                       /* the job has started it, below another */
    bool hosts;                         /* it has only started others: no worker */
};

struct round {
    int number, world_size, started;
    bool complete;
    int64_t first_start_ns, last_start_ns; /* last: of the start that completed it */
    struct worker **workers;               /* in order of start */
    size_t n, cap;
    struct round *elder, *heir; /* the next before and after it with the same identity, or NULL */
    bool gone;                  /* its workers were hosts: it is no round */
};

struct rounds {
    struct arena arena;
    bool
        printed; /* something the job said was read from its output: not every worker need say it */
    bool strict; /* the restart count is part of a round's identity */
    struct round **v;
    size_t n, cap;
    struct worker **workers; /* all, in order of start */
    size_t workers_n, workers_cap;
    struct worker **by_pid; /* the newest of each pid, hashed; NULL: free */
    size_t by_pid_n, by_pid_cap;
    void *lineages; /* of tsearch: the rounds of each identity */
    void *agents;   /* of tsearch: the newest start on each node */
};

void rounds_init(struct rounds *rs, bool strict);
void rounds_feed(struct rounds *rs, const struct record *r);
void rounds_load(struct rounds *rs, bool strict, const struct history *h); /* init and feed all */
void rounds_fini(struct rounds *rs);

struct worker *rounds_worker(const struct rounds *rs,
                             int64_t pid); /* the newest with it, or NULL */
/* Who had that pid then: the system gives the number of a process that is gone to another. The last
 * that had started; where none had, the first. NULL: no worker ever had it. */
struct worker *rounds_worker_at(const struct rounds *rs, int64_t pid, int64_t t_ns);
/* Whether a start below that worker would make it a host: it is one, or has told nothing of its own
 * (it is ready, resumes, makes steps), or is none at all any more. */
bool rounds_may_host(const struct rounds *rs, int64_t pid);
/* Likewise, of a process below it with that place: one with the worker's own speaks for it. */
bool rounds_hosts(const struct rounds *rs, int64_t pid, int rank, int world_size);
const struct round *rounds_last_complete(const struct rounds *rs); /* NULL: none */
const struct worker *round_rank(const struct round *r, int rank);  /* NULL: has not started */
/* It was seen to end, and with status 0. */
bool worker_ended_well(const struct worker *w);
/* It was seen to end, with another status or with one that nobody could tell. */
bool worker_ended_badly(const struct worker *w);
/* It is known to have ended with another status. */
bool worker_failed(const struct worker *w);
/* Every worker of it ended well, and it was complete. */
bool round_ended_well(const struct round *r);
/* The lowest of the steps that its workers told first; -1: none told any. */
int64_t round_first_step(const struct round *r);
/* When the last of its workers had ended; 0: one was not seen to end. */
int64_t round_ended_ns(const struct round *r);
/* The first worker that ended otherwise than with status 0, or NULL. */
const struct worker *round_failed(const struct round *r);
size_t round_stepped(const struct round *r); /* how many of its workers have made a step */
int round_nodes(const struct round *r);      /* how many nodes its workers run on */
bool round_on_node(const struct round *r, const char *node);
/* A worker of `earlier` that had not ended when `later` began, or NULL. */
const struct worker *round_outlives(const struct round *earlier, const struct round *later);
