/* simulation: the inside of sim, for the files of this room. */
#pragma once

#include "base/pool.h"
#include "base/rand.h"
#include "harness/invariants/judge.h"
#include "harness/sim/schedule.h"

/* What all agents are configured with, in most seeds. */
#define SIM_LAST_CALL_NS    (300 * SIM_MS)
#define SIM_JOIN_TIMEOUT_NS (20000 * SIM_MS)
#define SIM_GIVE_UP_NS      (300000 * SIM_MS)
#define SIM_ADMIT_NS        (50 * SIM_MS)
#define SIM_STOP_TIMEOUT_NS (200 * SIM_MS)
#define SIM_GRACE_NS        (500 * SIM_MS) /* after a change of members */

enum { SIM_BRIEF_ROUNDS = 8 /* that are begun at once */ };
enum { SIM_WORKERS = 2 /* of a node */, LEASES_MAX = 16, SIM_JOBS_MAX = 2 };

struct sim;

struct occurrence {
    int64_t at_ns;
    uint64_t seq;
    void (*run)(struct sim *c, struct occurrence *o);
    void (*drop)(struct sim *c, void *payload); /* NULL: payload is not owned */
    size_t place;                               /* in the queue */
    int node;
    bool process;  /* for the agent's process: waits while it is stopped */
    uint64_t life; /* of the agent it is for; one for another life is dropped */
    int64_t a, b;
    void *payload;
};

/* Its place in the order of things, next to each other in memory. */
struct planned {
    int64_t at_ns;
    uint64_t seq;
    struct occurrence *occurrence;
};

/* What of a group of workers the judge is not shown. */
struct group_model {
    bool disturbed, stopping, dying, orphan, stubborn;
    bool guard_dead, closes; /* its workers keep no descriptor that they did not open */
    int64_t world_key;       /* of all groups of this round, and of no other job's */
    uint64_t number;         /* so that what was planned for an earlier group is ignored */
    struct rand rand;        /* decides what becomes of it */
};

struct sim_stream {
    uint64_t generation;
    struct sim *job;
    int node; /* whose it is, as long as it is watched */
    enum watch_slot slot;
    struct kv_watch *watch;
    bool broken;
    int64_t last_ns;
};

struct sim_node {
    struct judged_node shown; /* the first: the judge finds it there */
    struct rendezvous *core;  /* NULL: no agent runs */
    char name[16];
    bool wanted; /* is to run an agent in the end */
    bool late;   /* its first agent comes with the schedule */
    int64_t clock_offset_ns;
    double rate;
    struct rand wire, body; /* decide about its messages; about the rest */
    bool leads;             /* as it has said itself */
    int64_t guard_stopped_until_ns, cut_until_ns;
    int64_t deaf_until_ns; /* answers and watches do not get through, requests do */
    int64_t mute_until_ns; /* requests do not get through */
    int64_t answers_from_ns, requests_from_ns; /* none comes before */
    int64_t stuck_until_ns;                    /* its workers are in state D */
    int64_t frozen_until_ns;                   /* they do nothing; SIGKILL acts */
    int64_t crashes_until_ns;                  /* all of it is killed whenever they begin */
    int64_t halts_until_ns, halt_ns;           /* it stands still for that long, each second */
    int64_t stall_from_ns;                     /* of shown.stall_until_ns */
    int64_t lag_ns;                            /* what it has lost by earlier stalls */
    bool other;                                /* its agent is of another attempt */
    struct occurrence *timer;                  /* its next one; NULL: none is planned */
    int64_t timer_local_ns;                    /* on the node's clock */
    struct sim_stream streams[WATCH_SLOTS];
    uint64_t pending[64]; /* ids of requests without a reply */
    int64_t beat_pending;
    struct group_model group;
    struct sim_lifeline *lifelines; /* the newest first */
    int64_t fence_ns, hard_ns;      /* of the guard, on this node's clock */
    bool fence_planned;
};

/* What went to the store and came from it since the last round ran; bytes of keys and values. */
struct traffic {
    int64_t operations, messages, events, bytes;
};

struct armed {
    const struct sim_entry *entry;
    int left; /* transactions still to come */
};

/* A key as the store has it, and what it says; len 0: none. */
struct known_key {
    size_t len;
    char text[120];
    struct store_key key;
};

/* The store, with all jobs in it. */
struct sim_store {
    struct kv *kv;
    struct kv *backup; /* to which it will be set back, or NULL */
    int era;           /* how often it was: no connection outlasts that */
    struct sim *jobs[SIM_JOBS_MAX];
    int n_jobs;
    int64_t compact_until_ns; /* it forgets every change at once */
    int64_t full_until_ns;    /* it writes nothing */
    int64_t leases[LEASES_MAX];
    int n_leases; /* that were granted; the newest of them */
};

/* One job. */
struct sim {
    const struct sim_schedule *schedule;
    const char *run_id;
    bool trace;
    struct armed *armed; /* faults that wait for a transaction */
    int n_armed;
    int64_t now_ns;
    uint64_t seq;
    struct planned *queue; /* a heap */
    size_t n_queue, cap_queue;
    struct pool pool; /* of occurrences and what they carry */
    struct known_key known[32];
    struct sim_wire *spares; /* messages that have come to an end */
    struct sim_lifeline *lifelines;
    struct sim_store *store;
    struct sim_node *nodes;
    int n_nodes;
    bool calm_now; /* the troubled time is over */
    struct judge judge;
    struct judged_times times;
    struct traffic traffic;
    bool roles;         /* nodes have different ones */
    bool unnamed;       /* its agents name no attempt */
    bool hasty;         /* timers come early */
    bool in_process;    /* the only agent has its store within itself */
    struct arena arena; /* of one look into the store */
    struct {            /* for marks: the newest head */
        char uid[UID_SIZE];
        bool by_guard; /* the failure that it tells is none of one worker's */
        int64_t revision;
        bool heard; /* a watch has told somebody else */
    } written;
    struct sim_result *result;
    struct transcript *transcript;         /* NULL: the same */
    struct history_writer *history_writer; /* NULL: nobody wants to read what happened */
    bool one_job;                          /* what is recorded ends with it */
};

/* What chance decides in a run hangs on the seed and on whom it is about, never on what else has
 * happened: a fault taken out of the schedule leaves the rest as it was, as far as can be. */
enum sim_concern {
    CONCERN_DRAW,
    CONCERN_CLOCK,
    CONCERN_WIRE,
    CONCERN_BODY,
    CONCERN_BOOT,
    CONCERN_CALM,
    CONCERN_CORE,
    CONCERN_GROUP,
    CONCERN_JOB,
};
struct rand sim_rand(uint64_t seed, enum sim_concern concern, int node, uint64_t number);
int64_t sim_chance_ns(struct rand *r, int64_t from_ns, int64_t to_ns);
bool sim_chance(struct rand *r, int per_thousand);
struct occurrence *sim_plan(struct sim *c, int64_t at_ns, int node,
                            void (*run)(struct sim *, struct occurrence *));
/* For the agent's process that runs now on the node. */
struct occurrence *sim_plan_agent(struct sim *c, int64_t at_ns, int node,
                                  void (*run)(struct sim *, struct occurrence *));
/* The number of something that is planned later, if at all, with sim_plan_agent_as. */
uint64_t sim_number(struct sim *c);
struct occurrence *sim_plan_agent_as(struct sim *c, uint64_t number, int64_t at_ns, int node,
                                     void (*run)(struct sim *, struct occurrence *));
/* queue.c: what is planned, by time, and at one time in the order of the numbers */
void sim_queue_add(struct sim *c, struct occurrence *o);
void sim_queue_move(struct sim *c, struct occurrence *o, int64_t at_ns, uint64_t number);
struct occurrence *sim_queue_take(struct sim *c); /* the next; there must be one */
/* What runs now runs again then, in the order it had. */
void sim_postpone(struct sim *c, struct occurrence *o, int64_t at_ns);
struct now sim_node_now(const struct sim *c, const struct sim_node *n);
int64_t sim_node_to_real(const struct sim_node *n, int64_t local_ns);
/* When its CLOCK_MONOTONIC will be at_ns; now, when it has been. */
int64_t sim_monotonic_to_real(const struct sim *c, const struct sim_node *n, int64_t at_ns);
void sim_timer_replan(struct sim *c, int node); /* the clock has changed */
void sim_clock_rate(struct sim *c, int node, double rate);
void sim_clock_stall(struct sim *c, int node, int64_t span_ns);
void sim_agent_event(struct sim *c, int node, const struct event *ev);
void sim_agent_gone(struct sim *c, int node);
void sim_say(struct sim *c, int node, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
const char *sim_attempt(const struct sim *c, int node); /* of its agent */
/* Starts the node's agent, unless one runs then. */
void sim_boot(struct sim *c, int node, int64_t after_ns);
void sim_cut_later(struct sim *c, int node, int64_t after_ns, int64_t span_ns);

/* faults.c: all of a schedule's faults are planned; a transaction was applied that node sent. */
void sim_faults_plan(struct sim *c);
void sim_faults_applied(struct sim *c, int node);

/* marks.c */
void sim_mark(struct sim *c, enum sim_mark m);
/* A transaction is about to be counted. */
void sim_mark_txn(struct sim *c, const char *uid, const struct op *ops, size_t n);
void sim_mark_if(struct sim *c, enum sim_mark m, bool reached);
/* A watch has told the node of these changes. */
void sim_mark_heard(struct sim *c, int node, const struct entry *entries, size_t n);
/* The store has refused what was sent then. */
void sim_mark_refused(struct sim *c, const char *uid, const struct op *op, int64_t sent_ns);
void sim_mark_agent_gone(struct sim *c, int node); /* before it is */
void sim_mark_claim(struct sim *c, int node, const char *what);
/* A head was judged; the judge still has the one before it. */
void sim_mark_head(struct sim *c, const struct head_change *h);

/* wire.c: requests, replies, watches and the store */
void sim_wire_act(struct sim *c, int node, const struct action *a);
void sim_wire_close(struct sim *c, int node); /* the agent is gone, its streams with it */
void sim_wire_fini(struct sim *c);            /* after every message was dropped */
void sim_stream_break(struct sim *c, int node, enum watch_slot slot);
/* It says nothing more, and its loss is seen only after this time. */
void sim_stream_stall(struct sim *c, int node, enum watch_slot slot, int64_t span_ns);
/* Asked when there is a message: it is dropped then. */
bool sim_node_is_cut(struct sim *c, int node);
int64_t sim_delay_ns(struct sim *c, int node); /* of a message */
void sim_wire_fan_out(struct sim *c);          /* of what has been written */

/* traffic.c */
void sim_traffic_events(struct sim *c, const struct kv_event *events, size_t n);
void sim_traffic_request(struct sim *c, const struct kv_txn *txn,
                         const struct kv_txn_result *reply);

/* A key as the store has it; false: it is none of the job's. */
bool sim_traffic_key(struct sim *c, struct kv_bytes text, struct store_key *ret);

/* machine.c: guards and workers */
void sim_machine_start(struct sim *c, int node, const struct round_spec *spec);
void sim_machine_stop(struct sim *c, int node, int64_t grace_ns);
void sim_machine_kill(struct sim *c, int node);
void sim_machine_deadline(struct sim *c, int node, int64_t fence_ns, int64_t hard_ns);
/* The clock has changed: the guard's deadlines come at another time. */
void sim_machine_replan(struct sim *c, int node);
void sim_machine_fail_worker(struct sim *c, int node);
void sim_machine_agent_gone(struct sim *c, int node);
void sim_machine_power_off(struct sim *c, int node);
void sim_crash_soon(struct sim *c, int node);         /* its workers have begun */
bool sim_machine_kill_guard(struct sim *c, int node); /* false: it has no workers */

/* lifeline.c: connections whose end is a proof */
void sim_lifeline_act(struct sim *c, int node, const struct action *a);
void sim_lifeline_born(struct sim *c, int node);    /* a group inherits what its agent holds */
void sim_lifeline_release(struct sim *c, int node); /* a holder has gone */
void sim_lifeline_agent_gone(struct sim *c, int node);
void sim_lifeline_power_off(struct sim *c, int node); /* before anything else of it */
bool sim_lifeline_reset(struct sim *c, int node);     /* on the way; false: there is none */
void sim_lifeline_forget(struct sim *c);              /* by a store that restarts */
void sim_lifeline_fini(struct sim *c);

/* judging.c: the judge's world */
void sim_judge_init(struct sim *c, const struct sim_terms *terms);
void sim_judge_fini(struct sim *c);
void sim_violation(struct sim *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* After a transaction was applied: who sent it, and what it put. */
void sim_judge_txn(struct sim *c, const char *uid, const struct op *ops, size_t n);
void sim_judge_exit(struct sim *c, int node, int code);
/* The agent ends its workers; as the judge is told of it. */
void sim_judge_stop(struct sim *c, int node, const struct action *a);
/* Whether a store that nobody watches, and whose past is forgotten here, holds as many bytes as a
 * new one with its keys would. */
bool sim_memory_fits(struct kv *kv, size_t *ret_held, size_t *ret_needed);
/* The store has other data from now on; those of before are freed. */
void sim_store_replace(struct sim_store *store, struct kv *kv);
/* In the store, as of now: a job whose lease ends is forgotten as if the store had been wiped. */
void sim_leases_expire(struct sim *c);
