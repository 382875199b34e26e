/* state: what the files of this room share; nobody outside includes it.
 *
 * As in agent/core every step is three moves: the event is written into the state, each part looks
 * at the whole of it and asks for what is missing, then the timer is set. What the store holds is
 * known by the mirror alone, whoever wrote it; an answer only says whether to ask again. So a lost
 * answer needs no code of its own. */
#pragma once

#include "agent/legacy/document.h"
#include "agent/legacy/legacy.h"
#include "agent/legacy/mirror.h"
#include "base/rand.h"

#define S             1000000000LL
#define MS            1000000LL
#define HARD_AFTER_NS (500 * MS) /* the fence, when even the guard does not run */

/* torchelastic's: of rank_<R>, of a state that must not outlive its makers, of the run's folder. */
enum { TTL_ALIVE_S = 10, TTL_STATE_S = 10, TTL_SETUP_S = 5, TTL_RUN_S = 7200 };

enum stage { STAGE_OPEN, STAGE_MEET, STAGE_ROUND, STAGE_PART };

/* Requests under way: one that does something, and three that go on beside it. */
enum call_slot { CALL_FLOW, CALL_WATCH, CALL_ALIVE, CALL_RUN, CALLS };

struct call {
    uint64_t id;      /* 0: none is under way */
    int64_t retry_ns; /* not before */
    bool waits;       /* a WAIT, not a GET */
};

/* What the request of CALL_FLOW is for. */
enum legacy_flow {
    FLOW_OPEN,
    FLOW_SETUP,
    FLOW_COUNTER,
    FLOW_FOLDER,
    FLOW_STATE, /* active_version */
    FLOW_ALIVE, /* the own rank_<R> */
    FLOW_DROP,  /* the same, deleted */
    FLOW_KEY,
    FLOW_ADD, /* to the number of an exit barrier */
};

/* The making of a new version. */
struct setup {
    int64_t modified; /* index of the own {"status": "setup"}; 0: none */
    int64_t since_ns, version;
    bool folder;
};

/* This agent as a member that has joined. */
struct legacy_seat {
    int64_t version; /* 0: none */
    int64_t last_call_ns, renewed_ns;
};

/* The own rank_<R>. */
struct alive {
    char *key; /* NULL: none */
    int64_t next_ns;
    int64_t sent_ns;     /* CLOCK_BOOTTIME, of the request under way */
    int64_t deadline_ns; /* CLOCK_BOOTTIME: workers must be dead by then */
};

/* The local workers, of the round that is there. */
struct legacy_group {
    bool there; /* from when they are to be started until all are dead */
    bool ran;   /* it was started in this round */
    int workers, exited;
    bool stopping, killed, failed, ok;
    int64_t fence_ns; /* CLOCK_BOOTTIME: the guard's deadline */
    struct failure failure;
};

struct legacy_round {
    int64_t version;
    int rank, n;
    int rank_base, world, role_rank_base, role_world;
    bool port_asked;
    char addr[NAME_SIZE]; /* of the port that was given; "" : none yet */
    int port;
    bool told_barrier;
    bool newer; /* a torch from 2.4 on is in it, which has other keys for ranks and barrier */
    bool added; /* to the number of its exit barrier */
    bool pure;  /* all its members are rankrun agents */
    char host[2 * NAME_SIZE]; /* of rank 0's node, in a pure one; "": it has no name */
    bool looks_up, is_found;  /* it: asked for; and it leads to its address from here, too */
    bool looked_up;
    bool lost; /* one of them is, and the job is a gang */
    char lost_node[NAME_SIZE];
};

/* LOST: a member of a gang is. */
enum part_why { PART_DONE, PART_FAILED, PART_LEFT, PART_LOST };

struct legacy {
    struct rendezvous_config config;
    const char *prefix, *run, *rdzv; /* <prefix>/run_<id>, and its folder rdzv */
    const char *etcd;                /* its version */
    char uid[UID_SIZE];
    struct arena strings, arena; /* arena: of the step */
    struct rand rand;
    struct action *actions;
    size_t n_actions;
    struct now now;
    int64_t wake_ns, due_ns, start_ns;
    bool over;

    enum stage stage;
    struct call calls[CALLS];
    uint64_t next_id;
    int64_t heard_ns; /* 0: never */
    bool silent, told_silent;

    int opened; /* steps of opening */
    struct mirror mirror;
    bool seen;            /* all was read once */
    uint64_t puts_before; /* when the GET was sent */
    struct document doc;
    int64_t run_next_ns;

    enum legacy_flow flow;
    bool flow_puts;        /* it is a PUT */
    int64_t flow_modified; /* of the state that it was made from */
    bool doc_due;          /* the state is no more what it was: wait for what it is */
    int64_t not_before_ns; /* after a lost race */

    int64_t join_ns; /* CLOCK_MONOTONIC: until then a round is to begin; 0: no limit yet */
    struct setup setup;
    struct legacy_seat seat;
    struct alive alive;
    int64_t left_version, announced_version;
    bool told_spare, told_wait;

    struct legacy_round round;
    struct legacy_group group;
    int spent; /* restarts */
    int signo;

    enum part_why part;
    int64_t part_ns;
};

/* actions.c */
struct action *legacy_add(struct legacy *l, enum action_kind kind);
void legacy_log(struct legacy *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void legacy_claim(struct legacy *l, const char *what, int64_t round);
void legacy_exit(struct legacy *l, int code, const struct failure *f, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void legacy_wake_at(struct legacy *l, int64_t monotonic_ns);

/* call.c */
/* True when a request may be made in the slot now; otherwise it sees to being woken. */
bool call_may(struct legacy *l, enum call_slot slot);
void call_send(struct legacy *l, enum call_slot slot, const struct tree_request *q);
void flow_send(struct legacy *l, enum legacy_flow flow, const struct tree_request *q);
/* Sets active_version to what e makes of it, provided it is still as it is known. ttl_s 0: none. */
void flow_edit(struct legacy *l, const struct document_edit *e, int64_t ttl_s);
/* Puts a key of the round or of the version that is not there. */
void flow_put(struct legacy *l, const char *key, const char *value, int64_t ttl_s);
void call_answered(struct legacy *l, uint64_t id, const struct tree_answer *answer);
const char *path_active(struct legacy *l);
const char *path_counter(struct legacy *l);
const char *path_version(struct legacy *l, int64_t version);
const char *path_rank(struct legacy *l, int64_t version, int rank);
const char *path_kv(struct legacy *l, int64_t version, const char *key);

/* The parts. */
void legacy_init_advance(struct legacy *l);
void legacy_init_answered(struct legacy *l, const struct tree_answer *answer);
void observe_advance(struct legacy *l);
void observe_answered(struct legacy *l, bool waited, const struct tree_answer *answer);
void document_refresh(struct legacy *l);
void alive_advance(struct legacy *l);
void alive_take(struct legacy *l, int64_t version, int rank);
void alive_renewed(struct legacy *l, const struct tree_answer *answer);
void alive_forget(struct legacy *l);
void legacy_join_advance(struct legacy *l);
void legacy_join_begin(struct legacy *l);
void waiting_advance(struct legacy *l);
bool waiting_missing(struct legacy *l); /* a key of a member of the round that there is */
void exchange_advance(struct legacy *l);
void round_begin(struct legacy *l, int rank);
void round_advance(struct legacy *l);
void round_fence(struct legacy *l);
void round_event(struct legacy *l, const struct event *ev);
void legacy_leave_begin(struct legacy *l, enum part_why why);
void legacy_leave_advance(struct legacy *l);
void legacy_leave_closed(struct legacy *l);
const char *exchange_get(struct legacy *l,
                         const char *key); /* decoded, of the round; NULL: absent */
void exchange_put(struct legacy *l, const char *key, const char *value);
/* Makes it the number that comes after the one that is known; FLOW_ADD. */
void exchange_add(struct legacy *l, const char *key, int64_t value);

/* gang.c: with --on-node-loss gang a run ends with the first of its nodes. */
void gang_look(struct legacy *l);
void gang_expired(struct legacy *l, const char *key);
const char *gang_end(struct legacy *l, const char *node);

/* barrier.c: all are done; own word, if it is not there; what torchrun's rank 0 waits for behind it: true when
 * something was asked for. */
bool barrier_is_done(struct legacy *l);
void barrier_tell(struct legacy *l);
bool barrier_finish(struct legacy *l);
