/* stage: the timeline against a cluster and an observer of cardboard. Nothing is started here. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/observe/question.h"
#include "harness/run/entry.h"
#include "scenarios/jobs/rankquake.h"

enum { NODES = 3, WORKERS_MAX = 64 };

struct node {
    struct plan_node plan;
    bool on;
    bool agent;
};
struct cluster {
    struct node nodes[NODES];
    struct node *list[NODES + 1];
};
struct observer {
    uint32_t kinds;
    uint64_t next_step;
    int released[16];
    int alive_fd;    /* never readable */
    bool dead[2000]; /* by pid */
};
struct event_client {
    int kept; /* by whom it was kept last */
};

struct stage {
    struct engine engine;
    struct scenario scenario;
    struct plan plan;
    struct history history;
    struct rounds rounds;
    struct cluster cluster;
    struct observer observer;
    struct timeline_entry entries[8];
    struct planned_entry planned[8];
};

/* What the cardboard was asked for. */
extern char injected[16][64];
extern size_t injected_n;
extern uint64_t injected_token, recovered_token;
extern struct node *recovered_node; /* that was told last */
extern int recovered_n, counts_asked, killed_nodes;

/* Of the wire: sets of 1 << STORE_*, and the requests that it was told to pass on. */
extern unsigned requests_told, requests_held;
extern uint64_t requests_passed[16];
extern size_t requests_passed_n;
/* Those that other hosts are to tell and hold, and the system calls that were let go. */
extern struct wanted_call calls_wanted[16];
extern size_t calls_wanted_n;
extern uint64_t calls_passed[16];
extern size_t calls_passed_n;

/* A question to a node of the store: the words behind "rankquake inquire". */
struct asked_of_store {
    char words[200];
    question_fn *fn;
    void *arg;
};
extern struct asked_of_store stores_asked[16];
extern size_t stores_asked_n;
extern int questions_abandoned; /* while they were open */

/* What is told of a node's wall clock; version 0: it has none of its own. */
extern struct clock_setting clock_set_to;
extern struct clock_told clock_told;
extern bool uptime_is_told; /* as of a node on another host */
extern struct node_uptime uptime_told;

extern const struct fault kill_worker, hang_worker, kill_agent, kill_node, cut;

struct stage *stage_new(void);
struct timeline_entry *stage_add(struct stage *s, const char *id, const struct fault *f);
void at_step(struct timeline_entry *a, int64_t step);
void aim_at(struct timeline_entry *a, const char *node, int local_rank);
void stage_begin(struct stage *s);
void stage_end(struct stage *s);  /* the job has ended; safe to call again */
void stage_down(struct stage *s); /* and all is counted */
struct run_entry *stage_acts(const struct stage *s);
void stage_free(struct stage *s);
/* pid = 100 * round + rank: worker `rank` of a round, one on each node. */
void start_round(struct stage *s, int round, int world);
/* A worker has done a step; returns the tag its sender is kept under, 0: it may go on. */
int say_step(struct stage *s, int pid, int64_t number);
void end_worker(struct stage *s, int pid);
/* Records of a kind about one entry of the timeline. */
int count_records(const struct stage *s, const char *kind, const char *id);
/* The agent of a node says where it is; returns likewise. */
int say_claim(struct stage *s, const char *node, const char *what);
/* Frames that a cut has dropped from one node to another so far. */
void say_dropped(struct stage *s, const char *from, const char *to, int frames);
/* The same with what has passed. */
void say_frames(struct stage *s, const char *from, const char *to, int dropped, int passed);
void in_phase(struct timeline_entry *a, const char *phase, int round);
void aim_at_node(struct timeline_entry *a, const char *node);
