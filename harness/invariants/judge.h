/* judge: looks at a simulated job and tells every invariant of each change before it is counted.
 *
 * It sees the store's history and the machines, and never a core: what an agent believes is what is
 * on trial. It counts rounds, restarts, members and certificates by itself. The simulator and each
 * state of the explorer have one: such a world fills in what can be seen of it, keeps that up to
 * date, and says what happens. What is counted is plain data, and can be a part of a state. */
#pragma once

#include "agent/core/canonical.h"
#include "agent/core/kv.h"
#include "agent/core/rendezvous.h"
#include "harness/invariants/invariants.h"

#define JUDGE_MS 1000000LL

enum {
    JUDGED_NAME_SIZE = 16, /* of a node */
    JUDGE_CALM_S = 60,     /* from the end of the trouble and of its work to that of the job */
};

/* --- what can be seen of a world --- */

/* What does not change: what agents are told, and what kind of world it is. */
struct judged_job {
    const char *run_id;
    int min, max, max_restarts;
    int max_free_rounds; /* in an hour; 0: any */
    enum restart_mode restart_mode;
    bool gang;         /* the loss of a node ends the job */
    bool seated;       /* group ranks are fixed */
    bool hosted;       /* the others reach the store through node 0's agent */
    bool kept;         /* groups of workers that have ended are shown, too */
    int64_t unseen_ns; /* a coordinator that nothing struck may hear of a change so late */
    int64_t last_call_ns, join_timeout_ns, give_up_ns;
    int64_t admit_ns, stop_timeout_ns, shutdown_grace_ns;
    int64_t hb_ns;     /* of the profile that agents are told; 0: of none */
    int proposals_max; /* without one that runs, in a row; 0: any */
    struct timing timing;
};

/* What the workers of a node were told of their place. */
struct judged_place {
    char role[ROLE_SIZE], token[TOKEN_SIZE];
    int slots, group_rank, rank_base, role_rank_base, role_world;
};

/* How an agent ends its workers. */
struct judged_stop {
    bool fenced; /* its deadline has passed */
    bool kill;   /* at once, by SIGKILL; else: */
    int signo;
    int64_t grace_ns; /* then by SIGKILL */
};

/* The workers of a node, or the last that it had. */
struct judged_group {
    bool alive, failed, by_guard;
    bool former;      /* the store that knows of its round is no more */
    bool told_fenced; /* by its agent, to who watches; where groups are kept */
    bool unasked;     /* a worker or the guard has ended, and nobody had asked for it */
    bool timed_out;   /* the guard's deadline, or its kernel's, has ended it */
    int64_t round;
    char uid[UID_SIZE];
    uint64_t life;                  /* of the agent that began it */
    int64_t reaped_ns;              /* not before: what SIGKILL has ended cannot be reaped yet */
    int64_t failed_ns;              /* when the first worker did; 0: none has */
    int failed_rank, failed_status; /* then: its local rank, and what waitpid said */
    int64_t ended_ns;               /* when all were dead; 0: they are not */
    struct judged_place place;
    int64_t over_ns; /* the judge's own: when the store said that its round is over */
};

/* Nodes are called n0, n1 ... */
struct judged_node {
    struct judged_group group;
    uint64_t life; /* the number of its agent */
    int seat;      /* its fixed group rank + 1; 0: it has none */
    int signaled;  /* how often, this life */
    int64_t booted_ns;
    int64_t stopped_until_ns;
    int64_t stall_until_ns; /* CLOCK_MONOTONIC stands still */
    /* The judge's own. */
    int64_t denied_ns; /* the store has written nothing of what this life asked since; 0: it has */
    bool wrote;        /* something of this life */
    int restarts;      /* rounds of this life that its own workers' failure ended, and that cost */
    int unsure;        /* of these, that it may not know, or may have counted for others' */
    uint64_t wiped_life; /* the agent that had workers when the store was wiped; 0: none */
    struct {             /* what the store has told this session of its run */
        char uid[UID_SIZE];
        int64_t revision;
    } heard;
    int64_t strange_ns; /* since when this life knows that its store was set back; 0: it does not */
};

struct judge;
struct head_change;

struct judge_ops {
    void (*broken)(void *world, const char *text);          /* the first is the one that counts */
    void (*head)(void *world, const struct head_change *h); /* was judged, and is counted next */
    const char *(*session)(const void *world, int node);    /* of the agent that runs; or NULL */
    /* Something keeps the agent from the store, or did until now: it may give the store up. */
    bool (*may_give_up)(const void *world, int node);
    int64_t (*quiet_ns)(const void *world); /* from when on nothing has disturbed anybody */
    bool (*fence_passed)(const void *world, int node); /* the deadline of its agent, by its clock */
};

/* --- what is counted --- */

struct judged_member {
    char uid[UID_SIZE];
    int rank;
    int node;        /* its number; -1: the store does not say */
    int64_t created; /* the revision of its session; 0: it has none */
    enum member_want want;
    bool said, gone_first, fenced, failed, succeeded;
    int64_t gone_ns;
};

/* A session that has begun, in the order of their beginning. */
struct judged_join {
    char uid[UID_SIZE], inc[INC_SIZE];
    int64_t at_ns;
};

struct judged_head {
    int64_t round, last_round;
    enum head_phase phase;
    int restarts, brief_rounds;
    int64_t revision, at_ns; /* of the store, when it was written */
};

/* What the first node of a round was told. */
struct judged_start {
    int64_t round;
    int world, group_world, master_port, restart_count;
    char master_addr[JUDGED_NAME_SIZE], token[TOKEN_SIZE];
};

/* Of a world whose times are those of a real job. */
struct judged_times {
    int64_t healed_ns;       /* when the troubled time was over; INT64_MAX: it is not */
    int64_t struck_until_ns; /* by faults that have struck so far */
    /* The judge's own. */
    struct judged_join *joins;
    size_t n_joins, cap_joins;
    struct {
        char uid[UID_SIZE], before[UID_SIZE];
        int64_t since_ns;
        int64_t absent_ns;            /* since when its holder has no session; 0: it has one */
        int64_t beat_ns;              /* its last */
        int64_t vacant_ns, silent_ns; /* the two, of the holder before, when this one took it */
    } lead;
    int64_t certified_ns;   /* the latest ack, done or certificate */
    struct failure failure; /* with which the job was closed */
    struct {                /* whether there are min sessions; a second of that resets few_ns */
        char inc[INC_SIZE]; /* of the job that came last */
        bool now;
        int64_t since_ns, few_ns;
    } enough;
};

struct judge {
    /* The world's; nodes: n_nodes structs of that size, each beginning with a judged_node. */
    const struct judge_ops *ops;
    void *world;
    struct judged_job job;
    struct kv *kv;
    void *nodes;
    size_t node_size;
    int n_nodes;
    int64_t now_ns;
    struct judged_times *times; /* NULL: how long something takes is not judged */
    bool others;                /* agents of two attempts have come */
    bool set_back;              /* the store was, to an older state: what is said there does not
                                 * follow from what was said before */
    /* Room for all nodes, and for all of their workers; by uid. */
    struct judged_member *last, *form;
    bool *ranks; /* that were started of the round that started last */
    int n_ranks;

    const char *writer; /* of the transaction that is judged: its session */
    char inc[INC_SIZE]; /* of the job: a store that has forgotten one takes another of that name */
    bool has_head;
    struct judged_head head;
    enum head_outcome outcome;
    int restarts;          /* counted here */
    bool failed;           /* the last round was ended by a failure */
    int64_t run_ns;        /* when the last one was completed */
    int64_t run_over_ns;   /* when it was over; 0: it is not */
    int64_t free_since_ns; /* of the hour that counts rounds without cost */
    int64_t failure_round; /* the latest that a head called failed */
    uint64_t risked;       /* invariants, by their place, that something was asked of */
    int n_last, n_form;
    int run_restarts; /* that the last round was completed with */
    int free_rounds;  /* completed, after another one, without cost */
    struct judged_start start;
    bool ended[OUTCOME_FAILED + 1]; /* so did jobs that another one has replaced */
    int64_t latest_round;           /* of any incarnation */
    struct {                        /* a store that came back empty: what it had known */
        bool happened;
        int restarts, least; /* that anybody has seen; that all of the last round have */
        int64_t round;
        char last_token[TOKEN_SIZE], token[TOKEN_SIZE]; /* of the last round; of that one */
        int64_t emptied_ns; /* when a store came back empty, if not by a lease; 0: never */
    } wiped;
};

/* --- what the world says has happened --- */

/* After a transaction was applied: who sent it, and what it put. */
void judge_txn(struct judge *j, const char *uid, const struct op *ops, size_t n);
/* Workers begin. */
void judge_start(struct judge *j, int node, const struct round_spec *spec);
/* Whether it is the newest round of a store that was wiped: who had heard of it may begin it. */
bool judge_is_former(const struct judge *j, const struct round_spec *spec);
/* The agent ends its workers. */
void judge_stop(struct judge *j, int node, const struct judged_stop *s);
/* Its workers are about to be dead. */
void judge_ended(struct judge *j, int node);
/* All workers of that session have succeeded. */
void judge_success(struct judge *j, const char *uid, int64_t round);
/* The agent hears that what it would write was refused; or that it was written, or judged. */
void judge_answered(struct judge *j, int node, bool denied);
/* The agent claims one of CLAIM_*. */
void judge_claim(struct judge *j, int node, const char *what, int64_t round);
void judge_exit(struct judge *j, int node, int code);
/* The agent that ends names a failure of the run that it was in. */
void judge_failure(struct judge *j, int node, int64_t round);
/* The agent ends with the outcome, and says this. */
void judge_said(struct judge *j, int node, const char *text);
/* The store is about to lose its data. */
void judge_wiped(struct judge *j);
/* The store is about to be set back to an older state. */
void judge_set_back(struct judge *j);
/* The agent hears, as this session of the run: the store was at that revision. */
void judge_heard(struct judge *j, int node, const char *uid, int64_t revision);
/* What it knew of the run when it asked, as that session; 0: nothing. */
int64_t judge_known(const struct judge *j, int node, const char *uid);
/* It reads: the run is in a store that was at that revision, below what it knew when it asked. */
void judge_strange(struct judge *j, int node, int64_t revision, int64_t known);
/* Leases have ended: the job's may have. */
void judge_expired(struct judge *j);
/* Nothing happens any more. over: the job has ended, and all agents and workers with it; late: or
 * it should have by now. */
void judge_end(struct judge *j, bool over, bool late);
void judge_fini(struct judge *j); /* what it has counted; all else is the world's to free */

/* What of the counts makes two states differ. Not looked at: what is of jobs that are timed, of
 * more than one attempt or incarnation, or count their restarts or rounds in a way of their own. */
void judge_canonical(const struct judge *j, struct canonical *seen);

/* --- for the invariants --- */

/* A head is written. judge.head is still the one before it, judge.last the members of the last
 * round that ran, judge.form those of the round that is being formed. */
struct head_change {
    const struct store_key *key;
    const struct head_value *to;
    bool settles; /* it says what the last round has cost */
    bool lost;    /* then: a member was lost in that round */
    int restarts; /* that the judge has counted, with that round */
    bool recalls; /* then: they go on from those that agents brought from a store of before */
    bool anew;    /* the first of a job that replaces another */
};

/* The run ends; only the first that is broken is kept. */
void invariant_broken(struct judge *j, const struct invariant *i, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static inline struct judged_node *judge_node(const struct judge *j, int node) {
    return (struct judged_node *)(void *)((char *)j->nodes + (size_t)node * j->node_size);
}
static inline struct judged_group *judge_group(const struct judge *j, int node) {
    return &judge_node(j, node)->group;
}
/* The member of that uid, NULL: none. */
struct judged_member *member_find(struct judged_member *m, int n, const char *uid);
struct store_key judge_key_of(enum key_kind kind, const char *inc, const char *uid);
/* The version of a key in the store, 0: it is not there; and its value, ret may be NULL. */
int64_t judge_key(const struct judge *j, const struct store_key *key, union value *ret);
bool judge_has_session(const struct judge *j, const char *inc, const char *uid);
/* A spare that was not in the last round. */
bool judge_is_spare(const struct judge *j, const struct head_change *h, const char *uid);
/* Its workers cannot be reaped; or could not until a moment ago, while the agent was stopped. */
bool judge_waits_for_workers(const struct judge *j, int node);
/* What the store says of a member whose uid is set: its node, what it wants, its session. */
void judge_look(const struct judge *j, const char *inc, struct judged_member *m);
/* Nothing has disturbed anybody since then, and what a fault has kept waiting is over; of a world
 * with times. */
int64_t judge_settled_ns(const struct judge *j);
/* A member of the last round was lost, or is about to be known as such. */
bool judge_is_lost(const struct judge *j, const char *inc);
/* The node whose workers, now or last, are of this session; NULL: none. */
struct judged_node *judge_node_of(const struct judge *j, const char *uid);
/* Who holds the lead has a session and an agent that runs, and did at that time. */
bool judge_is_led_since(const struct judge *j, int64_t since_ns);
/* Whether it could have been broken just now: what an invariant only waits for shows nothing. */
static inline void judge_risk(struct judge *j, enum invariant_place i) {
    j->risked |= UINT64_C(1) << i;
}
/* A round more that costs nothing is not to be had. */
bool judge_is_spent(const struct judge *j);
