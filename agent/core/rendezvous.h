/* rendezvous: the native rendezvous of one agent, as a pure state machine. THE header to read.
 *
 *     actions = rendezvous_step(r, event, now)
 *
 * No clock, socket, file or process is touched here. The shell around it (agent/agent.c; the
 * simulator is the other) does what the actions say, in their order, and reports what comes of it
 * as events. It decides nothing. The rules it must keep:
 *
 *  - Every SNAPSHOT, TXN, LEASE and BEAT is answered by exactly one event, also when nothing came
 *    back: a beat without a reply after hb (rendezvous_timing), another request after suspect, is
 *    ended, its connection dropped, and reported with reached = false (it may still be applied
 *    later, that is allowed for). A reply that comes after that is thrown away.
 *  - Reads are linearizable (etcd's default). The keys of one SNAPSHOT are read at one revision.
 *  - A WATCH delivers the events of its key or range from from_revision on, in order of revision
 *    and without gap, in CHANGES that never split a revision. When that cannot go on (connection
 *    lost, compacted, canceled) it says WATCH_LOST once and nothing more. The core then reads and
 *    watches again under a new generation; what comes with an old generation is ignored here.
 *  - TXN: all compares and all puts in one etcd transaction, every put with the given lease.
 *  - now: both clocks read at the beginning of the step, of this host.
 *  - The local worker group: START is answered by WORKERS_STARTED once all have exec'ed, then by
 *    one WORKER_EXITED for each worker (a failed exec: status of exit code 126 or 127 and the
 *    reason), at last by GROUP_REAPED, when no process of the group lives any more - whether asked
 *    for by STOP or KILL or not. GUARD_DEAD replaces all of what is still to come of these. The
 *    shell makes a new guard for the next START; one that cannot be made is a worker that could not
 *    be executed.
 *  - DEADLINE goes to the guard at once, before any later action of the same step.
 *  - LIFELINE_OPEN: a connection to the store is made, with no local worker alive; as soon as it
 *    stands the claim is sent on it and EVENT_LIFELINE says open. That it could not be made, or has
 *    ended, the same event says once. The shell keeps it, and a START whose spec says so gives a
 *    copy to every worker. LIFELINE_DROP: it is closed so that it can only end as broken.
 *  - After EXIT nothing is to be done but to end with that code.
 *
 * Who decides what is in the rooms' order: worker_group.c (the local workers), session.c (join,
 * beats), lifeline.c, leave.c (leave, end, a silent store), lead.c (who coordinates),
 * standby.c (who may have to next), coordinator.c with membership.c, ranks.c, budget.c and
 * detector.c (what a coordinator does). */
#pragma once

#include "agent/core/keys.h"
#include "agent/core/timing.h"
#include "agent/core/tree.h"
#include "base/arena.h"

struct rendezvous;

struct now {
    int64_t monotonic_ns; /* the coordinator's timers */
    int64_t boottime_ns;  /* the deadline: counts suspend too */
};

struct rendezvous_config {
    const char *run_id;
    const char *node, *addr, *role; /* identity of the node; where peers reach it */
    const char *host;               /* of agent/legacy alone: this node's full name and the address
                                     * that it leads to, "n0.example 10.0.0.1"; NULL: none */
    int slots;                      /* workers on this node */
    int seat;                       /* of a job with fixed ranks: its group rank + 1; 0: none */
    int min, max;                   /* nodes */
    int max_restarts;
    int max_free_rounds; /* an hour, that cost no restart; 0: any number, as fast as they come */
    enum restart_mode restart_mode;
    const char *attempt;  /* "" : none */
    struct timing timing; /* used when this agent is the first; checked and stretched before */
    int64_t last_call_ns, admit_ns, join_timeout_ns;
    int64_t stop_timeout_ns;   /* grace of a stop after a failure */
    int64_t shutdown_grace_ns; /* grace after a membership change or a signal */
    int64_t give_up_ns;        /* the store away for so long: exit 69 */
    bool store_in_process;     /* with max = 1: no deadline is armed */
    bool hosts_store;          /* others reach the store through this process: exit last */
    bool lifeline;             /* the store reads lifelines, and there is one to be had */
    enum member_want want;     /* WANT_STANDBY: a spare */
    enum node_loss on_node_loss;
};

/* --- what comes in --- */

/* A key as it is in a snapshot, or as a change left it. */
struct entry {
    struct store_key key;
    bool deleted; /* value NULL; only mod_revision is set */
    int64_t create_revision, mod_revision, version;
    const union value *value; /* the caller's, for the time of the step */
};

enum watch_slot { WATCH_HEAD, WATCH_LEAD, WATCH_HOLDER, WATCH_ALL, WATCH_SLOTS };

enum event_kind {
    EVENT_START,
    EVENT_TIMER,    /* the time of the last TIMER has come; one too many does no harm */
    EVENT_SNAPSHOT, /* reply to SNAPSHOT */
    EVENT_CHANGES,
    EVENT_WATCH_LOST,
    EVENT_DONE, /* reply to TXN, LEASE_GRANT, LEASE_KEEPALIVE */
    EVENT_BEAT, /* reply to BEAT */
    EVENT_WORKERS_STARTED,
    EVENT_WORKER_EXITED,
    EVENT_GROUP_REAPED,
    EVENT_GUARD_DEAD,
    EVENT_PORT, /* reply to NEED_PORT */
    EVENT_SIGNAL,
    EVENT_TREE, /* reply to TREE */
    EVENT_LIFELINE,
    EVENT_LOOKED_UP, /* reply to LOOK_UP */
};

enum beat_result { BEAT_APPLIED, BEAT_REFUSED, BEAT_FAILED /* nothing came back */ };

struct event {
    enum event_kind kind;
    union {
        struct {
            uint64_t id;
            bool reached;     /* false: nothing came back; the rest is not set */
            int64_t revision; /* of the store at the read */
            const struct entry *entries;
            size_t n;
        } snapshot;
        struct {
            enum watch_slot slot;
            uint64_t generation;
            int64_t revision; /* all events up to it are in; 0: that of the last entry */
            const struct entry *entries;
            size_t n;
        } changes;
        struct {
            enum watch_slot slot;
            uint64_t generation;
        } watch_lost;
        struct {
            uint64_t id;
            bool reached;     /* false: nothing came back, so that it may be applied or not, now or
                               * later; or the store has refused to do it */
            bool applied;     /* compares held; a lease: granted (or there already), kept alive */
            int64_t revision; /* of the store after it */
        } done;
        struct {
            int64_t seq;
            enum beat_result result;
        } beat;
        struct {
            int local_rank;
            int64_t pid;
            int wait_status;
            const char *error;   /* what the worker left in its error file, or "" */
            int64_t realtime_ns; /* when, for people */
        } exited;
        struct {
            bool fenced; /* the guard ended the group because the deadline had passed */
        } reaped;
        struct {
            int64_t pid;
            int wait_status;
            bool fenced; /* by its own timer, which ends it when the deadline has passed */
        } guard_dead;
        struct {
            const char *addr;
            int port; /* bound by the shell until the workers start */
        } port;
        struct {
            int signo;
        } signal;
        struct {
            uint64_t id;
            const struct tree_answer *answer;
        } tree;
        struct {
            uint64_t id;
            bool open; /* false: it could not be made, or has ended */
        } lifeline;
        struct {
            int64_t round; /* that it was asked for */
            bool found;    /* the name leads to the address here, too */
        } looked_up;
    };
};

/* --- what is to be done --- */

struct compare {
    /* A whole scope: holds when it does for every key there is, or for none. */
    struct store_key key;
    enum compare_target { COMPARE_VERSION, COMPARE_CREATE, COMPARE_MOD, COMPARE_LEASE } target;
    enum compare_relation { COMPARE_EQUAL, COMPARE_LESS } relation;
    int64_t number;
};

struct op {
    struct store_key key; /* a delete may name a whole scope */
    bool put;             /* false: delete */
    const union value *value;
};

enum { TXN_COMPARES_MAX = 8, TXN_OPS_MAX = 64, SNAPSHOT_KEYS_MAX = 3 };

struct txn {
    const struct compare *compares;
    size_t n_compares;
    const struct op *ops;
    size_t n_ops;
    int64_t lease; /* of every put */
};

/* Everything the environment of this node's workers is made of. */
struct round_spec {
    const char *run_id;
    int64_t round; /* RANKRUN_ROUND: strictly rising */
    int group_rank, group_world;
    int rank_base, local_world, world;
    const char *role;
    int role_rank_base, role_world;
    const char *master_addr;
    int master_port;
    int restart_count, max_restarts;
    const char *token; /* of the round; differs from every other's */
    /* The guard forks only before fence_ns (CLOCK_BOOTTIME) when deadline_required. */
    bool deadline_required;
    int64_t fence_ns, hard_ns;
    bool lifeline; /* each worker inherits the one that is open */
};

/* What is sent on a lifeline (lifeline.h): whose end its end is. */
struct lifeline_claim {
    char inc[INC_SIZE];
    char uid[UID_SIZE];
    int64_t revision; /* C(s/uid) */
};

enum action_kind {
    ACTION_SNAPSHOT,
    ACTION_WATCH, /* replaces the watch that the slot had */
    ACTION_UNWATCH,
    ACTION_TXN,
    ACTION_LEASE_GRANT, /* a lease of that id that is there already is as good */
    ACTION_LEASE_KEEPALIVE,
    ACTION_BEAT,     /* a TXN with a reply of its own; at most one at a time */
    ACTION_DEADLINE, /* to the guard */
    ACTION_START,
    ACTION_STOP, /* signo to each worker's group, SIGKILL after grace_ms */
    ACTION_KILL,
    ACTION_NEED_PORT, /* a free port of this node, kept bound until START; the old one is let go */
    ACTION_TIMER,     /* one timer, CLOCK_MONOTONIC; a new one replaces the last */
    ACTION_CLAIM,     /* the launcher's phase, for who watches; see CLAIM_* */
    ACTION_LOG,       /* one line for people, stderr */
    ACTION_STORE,     /* the same, after words that say where the store is */
    ACTION_LIFELINE_OPEN,
    ACTION_LIFELINE_DROP,
    ACTION_EXIT,
    ACTION_TREE,        /* of agent/legacy alone, as its cancel: a request to an etcd's v2 tree */
    ACTION_TREE_CANCEL, /* no reply is wanted any more */
    ACTION_LOOK_UP,     /* of agent/legacy alone; one that is under way is given up */
};

/* The words of ACTION_CLAIM. */
#define CLAIM_JOIN         "join"      /* this agent's session exists */
#define CLAIM_LEAD         "lead"      /* this agent coordinates */
#define CLAIM_LAST_CALL    "last-call" /* min is reached, waiting for more */
#define CLAIM_FORM         "form"      /* a round is proposed */
#define CLAIM_ACK          "ack"       /* own workers are dead, ready for the next round */
#define CLAIM_RUN          "run"       /* the round is complete */
#define CLAIM_START        "start"     /* workers are being started */
#define CLAIM_STARTED      "started"   /* all have exec'ed */
#define CLAIM_STOP         "stop"      /* workers are being stopped */
#define CLAIM_END          "end"    /* the round has ended: a worker failed, or a member was lost */
#define CLAIM_FENCED       "fenced" /* the deadline passed without a beat: workers killed */
#define CLAIM_LOST         "lost"   /* the session was revoked */
#define CLAIM_EXIT_BARRIER "exit-barrier" /* own workers are done, waiting for the others */
#define CLAIM_LEAVE        "leave"        /* going away on a signal */
#define CLAIM_CLOSED       "closed"       /* the outcome is there */

struct action {
    enum action_kind kind;
    union {
        struct {
            uint64_t id;
            struct store_key keys[SNAPSHOT_KEYS_MAX];
            size_t n;
        } snapshot;
        struct {
            enum watch_slot slot;
            uint64_t generation;
            struct store_key key;
            int64_t from_revision;
        } watch; /* UNWATCH: only slot */
        struct {
            uint64_t id;
            struct txn txn;
        } txn;
        struct {
            uint64_t id;
            int64_t lease, ttl_s; /* KEEPALIVE: no ttl */
        } lease;
        struct {
            int64_t seq;
            struct txn txn;
        } beat;
        struct {
            int64_t fence_ns, hard_ns; /* CLOCK_BOOTTIME, absolute */
        } deadline;
        struct {
            uint64_t id; /* DROP: only this */
            struct lifeline_claim claim;
        } lifeline;
        const struct round_spec *start;
        struct {
            int signo;
            int64_t grace_ms;
        } stop;
        struct {
            int64_t at_ns;
        } timer;
        struct {
            const char *what;
            int64_t round;
        } claim;
        const char *log;
        struct {
            const char *text; /* "does not answer" */
            bool lost;        /* why it did not answer is to be added */
        } store;
        struct {
            int code;                      /* 0, 1, 64, 69, 128 + signal */
            const char *text;              /* a sentence; "" when there is nothing to say */
            const struct failure *failure; /* what failed first, or NULL */
            int64_t round;                 /* the last one: of the failure, if there was one */
            bool earlier; /* all that was before this agent came: it took no part in the run */
            bool
                outcome; /* code is that of the job, for all agents of it, and not this one's own */
        } exit;
        struct {
            uint64_t id;
            struct tree_request request;
        } tree; /* TREE_CANCEL: only id */
        struct {
            const char *host; /* as rendezvous_config.host */
            int64_t round;
        } look_up;
    };
};

/* The strings of config are copied. seed: for uids, incarnations, tokens; must differ between
 * agents (sys/random) but for the simulator's. Returns NULL with err (-EINVAL) and the sentence to
 * print before exiting 64. */
struct rendezvous *rendezvous_new(const struct rendezvous_config *config, uint64_t seed,
                                  struct err *err);
struct rendezvous *rendezvous_free(struct rendezvous *r); /* NULL is allowed; returns NULL */

/* A second one that goes on exactly as the first would: given the same events at the same times
 * both ask for the same. The copy has no actions. */
struct rendezvous *rendezvous_copy(const struct rendezvous *from);
/* Gives back what the last step took; its actions are gone. For one that is kept, not driven. */
void rendezvous_rest(struct rendezvous *r);
/* What is drawn from here on follows from this seed, whatever was drawn before. */
void rendezvous_reseed(struct rendezvous *r, uint64_t seed);

/* The actions and all they point to live until the next step. *ret_n may be 0. */
const struct action *rendezvous_step(struct rendezvous *r, const struct event *event,
                                     struct now now, size_t *ret_n);

/* The values in force: those of the store once they are known, own ones before. */
struct timing rendezvous_timing(const struct rendezvous *r);
/* This session, "" before the first join. */
const char *rendezvous_uid(const struct rendezvous *r);
