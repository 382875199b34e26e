/* cluster: a few real rendezvous cores against one real kv, in virtual time, under a seeded
 * schedule of trouble. Same seed, same run, everywhere.
 *
 * What is simulated: a network that delays, loses and delivers late; watches that break; clocks
 * that differ in rate by up to 1 %; agents that crash, are stopped, cut off, sent a signal, come
 * back; guards with their two deadlines, also stopped ones; workers that fail, hang, ignore SIGTERM
 * or finish. After the troubled time everything heals, and the job must end.
 *
 * What is judged after every change (invariants.c): I1 to I4, I6, I7 and the contract that a
 * certified session has no worker. */
#pragma once

#include "agent/base/rand.h"
#include "agent/core/kv.h"
#include "agent/core/rendezvous.h"

enum { NODES_USUAL = 5, NODES_MAX = 200, WORLD_MAX = 2 * NODES_MAX };

#define MS 1000000LL

struct cluster;

struct cluster_config {
    uint64_t seed;
    int nodes;   /* so many, in calm all in one round; 0: chance decides */
    bool calm;   /* no trouble at all */
    bool frozen; /* no trouble but nodes that freeze, with replies that take nearly hb */
    bool trace;  /* print every event */
};

struct cluster_result {
    bool violated;
    char text[512];
    int64_t ended_ns; /* virtual */
    int64_t steps, rounds;
    enum head_outcome outcome;
};

void cluster_run(const struct cluster_config *config, struct cluster_result *ret);

/* --- the inside, for cluster.c, wire.c, machine.c and invariants.c --- */

struct occurrence {
    int64_t at_ns;
    uint64_t seq;
    void (*run)(struct cluster *c, struct occurrence *o);
    void (*drop)(void *payload); /* NULL: payload is not owned */
    int node;
    bool process;  /* for the agent's process: waits while it is stopped */
    uint64_t life; /* of the agent it is for; one for another life is dropped */
    int64_t a, b;
    void *payload;
};

struct group_model {
    bool alive, stopping, dying, by_guard;
    int64_t round;
    char uid[UID_SIZE];
    uint64_t number; /* so that what was planned for an earlier group is ignored */
    bool stubborn;
};

struct stream {
    uint64_t generation;
    struct kv_watch *watch;
    bool broken;
    int64_t last_ns;
};

struct node {
    struct rendezvous *core; /* NULL: no agent runs */
    uint64_t life;
    char name[16];
    bool wanted;   /* is to run an agent in the end */
    bool signaled; /* this life */
    int64_t clock_offset_ns;
    double rate;
    int64_t stopped_until_ns, guard_stopped_until_ns, cut_until_ns;
    uint64_t timer;
    struct stream streams[WATCH_SLOTS];
    uint64_t pending[64]; /* ids of requests without a reply */
    int64_t beat_pending;
    struct group_model group;
    int64_t fence_ns, hard_ns; /* of the guard, on this node's clock */
    bool fence_planned;
};

struct last_member {
    char uid[UID_SIZE];
    int rank;
    bool said, gone_first, fenced, succeeded;
};

struct judge {
    bool has_head;
    struct head_value head;
    int restarts; /* counted here */
    bool failed;  /* the last round was ended by a failure */
    struct last_member last[NODES_MAX], form[NODES_MAX];
    int n_last, n_form;
    struct round_spec facts; /* of the round that started last */
    bool ranks[WORLD_MAX];
    char run_id[64], role[ROLE_SIZE], master_addr[NAME_SIZE], token[TOKEN_SIZE];
};

struct cluster {
    struct cluster_config config;
    struct rand rand;
    int64_t now_ns;
    uint64_t seq;
    struct occurrence **heap;
    size_t n_heap, cap_heap;
    struct kv *kv;
    struct node nodes[NODES_MAX];
    int n_nodes, min, max, max_restarts;
    struct timing timing;
    bool calm_now; /* the troubled time is over */
    int64_t trouble_ends_ns;
    int loss, late; /* per thousand */
    bool frozen;
    int64_t slow_ns, slow_reply_ns; /* every message, every reply takes up to this */
    struct judge judge;
    struct cluster_result *result;
};

int64_t chance_ns(struct cluster *c, int64_t from_ns, int64_t to_ns);
bool chance(struct cluster *c, int per_thousand);
struct occurrence *plan(struct cluster *c, int64_t at_ns, int node,
                        void (*run)(struct cluster *, struct occurrence *));
/* For the agent's process that runs now on the node. */
struct occurrence *plan_agent(struct cluster *c, int64_t at_ns, int node,
                              void (*run)(struct cluster *, struct occurrence *));
/* What runs now runs again then, in the order it had. */
void postpone(struct cluster *c, struct occurrence *o, int64_t at_ns);
struct now node_now(const struct cluster *c, const struct node *n);
int64_t node_to_real(const struct node *n, int64_t local_ns);
void agent_event(struct cluster *c, int node, const struct event *ev);
void agent_gone(struct cluster *c, int node);
void cluster_say(struct cluster *c, int node, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* wire.c: requests, replies, watches and the store */
void wire_act(struct cluster *c, int node, const struct action *a);
void wire_close(struct cluster *c, int node); /* the agent is gone, its streams with it */
void stream_break(struct cluster *c, int node, enum watch_slot slot);
bool node_is_cut(const struct cluster *c, int node);

/* machine.c: guards and workers */
void machine_start(struct cluster *c, int node, const struct round_spec *spec);
void machine_stop(struct cluster *c, int node, int64_t grace_ns);
void machine_kill(struct cluster *c, int node);
void machine_deadline(struct cluster *c, int node, int64_t fence_ns, int64_t hard_ns);
void machine_fail_worker(struct cluster *c, int node);
void machine_agent_gone(struct cluster *c, int node);
void machine_power_off(struct cluster *c, int node);

/* invariants.c */
void violation(struct cluster *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* After a transaction was applied: who sent it, and what it put. */
void judge_txn(struct cluster *c, const char *uid, const struct op *ops, size_t n);
void judge_start(struct cluster *c, int node, const struct round_spec *spec);
void judge_success(struct cluster *c, const char *uid, int64_t round);
void judge_exit(struct cluster *c, int node, int code);
