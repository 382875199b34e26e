/* engine: what the files of this room share. One engine carries out one plan; everything hangs on
 * the records: each one written is told to the timeline, the limits and the engine itself in turn.
 */
#pragma once

#include "agent/base/rand.h"
#include "harness/cluster/cluster.h"
#include "harness/observe/checkpoints.h"
#include "harness/observe/devices.h"
#include "harness/observe/mentions.h"
#include "harness/observe/observe.h"
#include "harness/observe/output.h"
#include "harness/run/run.h"

struct timeline;
struct limits_watch;
struct stores_watch;
struct directory;
struct probes;

enum scarcity { SCARCE_MEMORY_LIMIT, SCARCE_PROCESSES, SCARCE_MEMORY };
enum engine_phase { ENGINE_STARTING, ENGINE_RUNNING, ENGINE_ENDING, ENGINE_DOWN };

struct engine {
    const struct run_spec *spec;
    const struct plan *plan;
    struct loop *loop;
    struct recorder rec;
    struct cluster *cluster;
    struct observer *observer;
    struct devices *devices;                   /* NULL: no node has any */
    int look_begun, look_running, look_ending; /* the newest rounds whose devices were looked at */
    unsigned scarce;                           /* a bit per kind that has been told */
    int64_t killed_before;                     /* processes, for want of memory; -1: nobody knows */
    int usage_read;              /* the round at which the agents were looked at last */
    struct output *output;       /* NULL: nobody reads what is printed */
    struct mentions *mentions;   /* NULL: the scenario expects nothing of it */
    struct directory *directory; /* of the job's checkpoints; NULL: not known */
    struct timeline *timeline;
    struct limits_watch *limits;
    struct probes *probes; /* NULL: not yet steady, or nothing to ask */
    struct rand rand;
    struct arena arena;
    enum engine_phase phase;
    int nodes_awaited; /* on at start and not up yet */
    struct stores_watch *stores;
    const char *token; /* NAME=value, of the run's own store; NULL: it has none, or was told one */
    const char *end_why; /* as in the job-end record; NULL: not yet */
    bool steps_seen;
    bool job_speaks;   /* a worker has sent an event: steps are to be expected */
    int64_t steady_ns; /* 0: not yet */
    const struct node *
        *counting; /* nodes whose program has ended and whose leftovers are awaited */
    size_t counting_n;
    bool undisturbed_failed; /* a round of the undisturbed run has ended in failure */
    bool outcome_seen;       /* an agent has ended with the job's outcome, 0 or 1 */
    int counts;              /* of the wire, asked for and not answered */
    bool last_count;         /* the one before the end has been asked for */
    int master_round;        /* the newest whose MASTER_PORT has been looked at */
    size_t rounds_read;      /* rounds whose checkpoints have been read */
    struct loop_source *end_timer, *lag_timer, *signals[3];
    int64_t lag_due_ns, lag_max_ns, lag_window_ns;
    struct loop_source *pause; /* the job has ended, somebody looks at the cluster; NULL: no */
    bool looked_at;            /* what hangs has been written down in hang/ */
    struct err failure;        /* code != 0: the harness broke */
};

struct json_writer *engine_record(struct engine *e, enum source s, const char *kind);
void engine_recorded(struct engine *e);
/* Ends the job: why is ended | limit | interrupted | error. Safe to call again. */
void engine_end(struct engine *e, const char *why);
void engine_fail(struct engine *e, const struct err *err);
void engine_wait_anew(struct engine *e); /* for what is counted when it has ended */
void engine_take_down(struct engine *e); /* once it has ended and everything is counted */

/* All agents at once, when every node is up and every store answers. */
void engine_start_job(struct engine *e);

/* stores.c: whether the nodes that are there for the store answer. */
struct stores_watch *stores_new(struct engine *e, struct err *err); /* NULL with err */
struct stores_watch *stores_free(struct stores_watch *s);
bool stores_ready(struct stores_watch *s);
void stores_started(struct stores_watch *s, const struct node *n);
void stores_ended(struct stores_watch *s, const struct node *n);

/* token.c: draws the token of the run's own store. */
void token_draw(struct engine *e);
/* The environment of a program that may ask that store, beside the agents; NULL: the harness's own.
 */
const char *const *token_env(const struct engine *e, struct arena *a);
/* The same for rankquake ask, which shows it where the URL is that store's. */
const char *const *token_env_for(const struct engine *e, struct arena *a, const char *url);

/* opening.c: the first lines of a history: what is run, by what, on what. */
void opening_record(struct engine *e);

/* directory.c: what lies in the job's directory of checkpoints, as evidence. */
struct directory *directory_new(struct engine *e); /* NULL: it is not known, or not one */
struct directory *directory_free(struct directory *d);
void directory_read(struct engine *e, int round); /* round has ended; 0: none has begun */
void directory_seen(struct engine *e, const struct record *r, struct client *from);
bool directory_is_listed(const struct directory *d); /* a command is still listing it */

/* outputs.c: what is printed, where the scenario wants to know. */
int outputs_open(struct engine *e, struct err *err);
/* The folder for the files of a node's workers; NULL: they write where their agent does. */
const char *outputs_dir(struct engine *e, const struct node *n);
void outputs_program(struct engine *e, const struct node *n); /* its log is there */
void outputs_seen(struct engine *e, const struct record *r);
void outputs_end(struct engine *e); /* reads what there is, and notes what came of it */

/* master.c: once a group has formed, what its nodes have at MASTER_PORT is noted. */
void master_seen(struct engine *e, const struct record *r);
void master_found(struct engine *e, const struct node *n, uint16_t port, int round,
                  const struct json *found);

/* looks.c: who is on the devices, at the moments that matter. at: start | round-start | round |
 * first-end | round-end | job-end. */
void looks_open(struct engine *e);
void looks_seen(struct engine *e, const struct record *r);
void looks_take(struct engine *e, const char *at, int round);

/* probes.c: what the scenario asks from outside, from steady state until the job ends. */
struct probes *probes_new(struct engine *e);  /* NULL: there are none */
struct probes *probes_free(struct probes *p); /* what is being asked is ended unheard */

/* usage.c: what every agent holds when a round is complete, and what the host lets all of them
 * have. usage_check: 0, or a -errno with a sentence that names the limit under which not even the
 * cluster can be. usage_open: from now on it is recorded when a limit may be in the job's way. */
int usage_check(const struct plan *p, struct err *err);
void usage_open(struct engine *e);
void usage_seen(struct engine *e, const struct record *r);

/* counting.c */
void engine_count(struct engine *e); /* asks the wire for all its counters; they come as records */
void counting_done(struct engine *e, const struct node *n); /* or there is nothing to count of it */
void counting_go_on(struct engine *e);
void counting_end(struct engine *e); /* nothing more is waited for */
void counting_counters(void *arg, struct node *n, const struct wire_counters *c);
void counting_counted(void *arg);

/* timeline.c */
struct timeline *timeline_new(struct engine *e);
struct timeline *timeline_free(struct timeline *t);
void timeline_start(struct timeline *t); /* the job's agents are about to start */
void timeline_arm(struct timeline *t);   /* anew: who has to wait at what */
void timeline_seen(struct timeline *t, const struct record *r, struct client *from);
/* A line that a worker has printed, or (pid 0) the program of a node. */
void timeline_heard(struct timeline *t, const char *node, pid_t pid, const char *line);
void timeline_steady(struct timeline *t);
void timeline_answer(struct timeline *t, uint64_t token, const char *error);
bool timeline_may_start_node(const struct timeline *t); /* a node-start may still come */
/* When all agents that still run are cut off from the store, only the end of that lets them end. */
void timeline_heal_the_last(struct timeline *t);
void timeline_finish(struct timeline *t); /* finally: notes what did not fire, ends what lasts */
void timeline_close(struct timeline *t);  /* all is counted: notes why what fired was not felt */

/* limits.c */
struct limits_watch *limits_new(struct engine *e);
struct limits_watch *limits_free(struct limits_watch *l);
void limits_start(struct limits_watch *l);
void limits_seen(struct limits_watch *l, const struct record *r);
/* How late the harness itself is: measured from lag_start on, every 100 ms, and told every second
 * and by lag_end. While it was away no limit runs. lag_excuse: it has kept itself from the loop on
 * purpose, when the job was over anyway. */
void lag_start(struct engine *e);
void lag_excuse(struct engine *e);
void lag_end(struct engine *e);

/* hang.c: writes down in DIR/hang what everything that lives is doing, before it is ended. It takes
 * some tens of milliseconds, seconds at most; false: it could not be written. */
bool hang_look(struct engine *e);
void hang_counters(struct engine *e, struct node *n, const struct wire_counters *c);

/* presence.c: tells in the run directory who lives there, and that nobody does any more. */
void presence_note(struct engine *e);
void presence_end(struct engine *e);

/* pause.c: true while the cluster is to stay up. Its end takes the cluster down. */
bool pause_begin(struct engine *e);
void pause_end(struct engine *e);
