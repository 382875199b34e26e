/* keys: every key of a job in the store, and what its value says, as plain data.
 *
 *   /rankrun/quarantine                      this store has come back and may have forgotten a job
 *   /rankrun/<run_id>/cur                    the incarnation and what all agents must agree on
 *   /rankrun/<run_id>/<inc>/m/<uid>          member: who this session is
 *   /rankrun/<run_id>/<inc>/s/<uid>          session: exists = may have workers; is also the beat
 *   /rankrun/<run_id>/<inc>/gone/<uid>       a death certificate: has no worker, can start none
 *   /rankrun/<run_id>/<inc>/lead             who coordinates
 *   /rankrun/<run_id>/<inc>/plan/<pid>/<uid> one member's place in one proposed round; immutable
 *   /rankrun/<run_id>/<inc>/head             the round, its phase, the restarts, the outcome
 *   /rankrun/<run_id>/<inc>/ack/<round>/<uid>   workers of rounds <= round are dead (waited for)
 *   /rankrun/<run_id>/<inc>/done/<round>/<uid>  all workers of the round exited 0
 *
 * A uid is one session of one agent: 32 hex digits, new after every revocation. A round in a key
 * has ten digits, so that rounds sort. A run id is escaped (%xx) where it holds '/', '%' or bytes
 * that do not print. How values are written as JSON is the store's matter (agent/store/codec.c).
 *
 * All structs are fixed in size and hold no pointers: they can be copied and compared. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    UID_SIZE = 33,
    INC_SIZE = 17,
    PID_SIZE = 64, /* "<round>-<revision of lead>-<n>" */
    NAME_SIZE = 256,
    ROLE_SIZE = 64,
    ERROR_SIZE = 256,
    ATTEMPT_SIZE = 64,
    TOKEN_SIZE = 33,
    RUN_ID_MAX = 256,
    KEY_SIZE = 1024, /* of a key as text, with its NUL */
};

#define KEY_QUARANTINE_TEXT "/rankrun/quarantine"

enum key_kind {
    KEY_CUR,
    KEY_MEMBER,
    KEY_SESSION,
    KEY_GONE,
    KEY_LEAD,
    KEY_PLAN,
    KEY_HEAD,
    KEY_ACK,
    KEY_DONE,
    KEY_QUARANTINE,  /* of the store, not of a run */
    KEY_INCARNATION, /* with KEYS_ALL only: everything of the run but cur */
};

enum key_scope {
    KEYS_ONE,   /* this key */
    KEYS_ALL,   /* all keys of the kind; of a plan: of its pid; of acks and dones: of its round */
    KEYS_BELOW, /* acks and dones of all rounds before this one */
};

struct store_key {
    enum key_kind kind;
    enum key_scope scope;
    int64_t round;      /* KEY_ACK, KEY_DONE */
    char inc[INC_SIZE]; /* all but KEY_CUR */
    char pid[PID_SIZE]; /* KEY_PLAN */
    char uid[UID_SIZE]; /* member, session, gone, plan, ack, done, unless a whole range */
};

/* --- values --- */

struct timing {
    int64_t hb_ns, fence_ns, hard_ns, suspect_ns;
};

enum restart_mode { RESTART_COUNT_JOB, RESTART_COUNT_NODE };
/* A node of the last round is gone: the next round does without it, or a spare takes its place; or
 * the job has failed. */
enum node_loss { NODE_LOSS_REPLACE, NODE_LOSS_GANG };
enum member_want { WANT_MEMBER, WANT_STANDBY };

struct cur_value {
    char inc[INC_SIZE]; /* 16 hex digits; the job's lease id is made of it, see key_lease */
    char attempt[ATTEMPT_SIZE];
    char former[INC_SIZE]; /* the incarnation of another attempt that this one replaced */
    int64_t rounds_before; /* there: the numbers go on, they fence what workers write */
    int hold;              /* 1: workers of before may live; the first round waits for suspect */
    int min, max, max_restarts;
    int max_free_rounds; /* an hour, that cost no restart; 0: as many as there are, as fast */
    enum restart_mode restart_mode;
    enum node_loss on_node_loss;
    struct timing timing;
};

/* What an agent knows of an incarnation that the store has forgotten. */
struct past {
    char inc[INC_SIZE]; /* empty: of none */
    int64_t round;      /* the last one that reached RUN */
    int n;              /* its members */
    int restarts;
    int member; /* 1: this agent was one of them, and none of its workers lives */
};

struct member_value {
    char node[NAME_SIZE]; /* identity of the node: its disk */
    char addr[NAME_SIZE];
    int slots; /* workers on this node */
    char role[ROLE_SIZE];
    enum member_want want;
    int seat;           /* its group rank is fixed: seat - 1; 0: it is not */
    int64_t last_round; /* this node was in, 0: none */
    struct past past;
    int64_t stop_ns; /* its workers may take so long to end, and to be reaped */
};

struct session_value {
    int64_t seq; /* of the beat; 0: the join */
};

enum gone_why { GONE_LEFT, GONE_SILENT };

struct gone_value {
    enum gone_why why;
};

struct lead_value {
    char uid[UID_SIZE];
};

struct plan_value {
    int group_rank;
    int rank_base; /* RANK of local rank 0 */
    int world;
    int role_rank_base, role_world;
};

enum head_phase { HEAD_NONE, HEAD_FORM, HEAD_RUN, HEAD_END, HEAD_CLOSED };
enum head_cause { CAUSE_NONE, CAUSE_FAILURE, CAUSE_MEMBERSHIP };
enum head_outcome { OUTCOME_NONE, OUTCOME_SUCCEEDED, OUTCOME_FAILED };

/* The first failure of a round. */
struct failure {
    char uid[UID_SIZE]; /* empty: there is none, or it is nobody's (too few nodes) */
    char node[NAME_SIZE];
    int rank, local_rank; /* -1: not of one worker */
    int64_t pid;
    int wait_status; /* as of waitpid */
    char error[ERROR_SIZE];
    int64_t realtime_ns; /* for people */
};

struct head_value {
    int64_t round;
    enum head_phase phase;
    char pid[PID_SIZE]; /* the plan of `round` */
    int n;              /* its members */
    int64_t last_round; /* the last round that reached RUN; 0: none */
    char last_pid[PID_SIZE];
    int last_n;
    int restarts;
    int64_t charged_round; /* the last round whose failure has cost a restart; 0: none */
    int free_rounds;       /* rounds that cost none, within an hour */
    int64_t free_age_ms;   /* of that hour, when the last round began */
    int brief_rounds;      /* in a row: each cost none and follows on one that ended at once */
    enum head_cause cause; /* why the last round ended */
    struct failure failure;
    int world; /* workers of the round; from RUN on, as all below */
    char master_addr[NAME_SIZE];
    int master_port;
    char token[TOKEN_SIZE];    /* random, of this round */
    enum head_outcome outcome; /* in HEAD_CLOSED */
};

enum ack_why { ACK_OK, ACK_FAILED, ACK_FENCED };

struct ack_value {
    enum ack_why why;
    char error[ERROR_SIZE];
    char addr[NAME_SIZE]; /* where rank 0 would listen, were it on this node */
    int port;
};

struct quarantine_value {
    int owed; /* 1 */
};

struct done_value {
    int64_t round;
};

/* Which member is set follows from the kind of the key. */
union value {
    struct cur_value cur;
    struct member_value member;
    struct session_value session;
    struct gone_value gone;
    struct lead_value lead;
    struct plan_value plan;
    struct head_value head;
    struct ack_value ack;
    struct done_value done;
    struct quarantine_value quarantine;
};

/* The size of the member of the union that a kind uses; 0 for KEY_INCARNATION. */
size_t value_size(enum key_kind kind);

/* --- the first failure in words, the same on all agents --- */

/* Half a sentence; "" when there is none. Lives as long as the arena. */
const char *failure_text(struct arena *a, const struct failure *f);
/* The guard has ended, and with it all workers of its node: fills in all but uid and node. */
void failure_of_guard(struct failure *f, int64_t pid, int wait_status);

/* --- keys as text --- */

/* What a key (or a whole scope) is in the store; returns the length of text. For one key range_end
 * is "", for a scope as long as text. Both are written with a NUL. Never fails: run ids longer than
 * RUN_ID_MAX must be refused before (key_run_id_check). */
size_t key_format(const struct store_key *key, const char *run_id, char text[KEY_SIZE],
                  char range_end[KEY_SIZE]);

/* Reads a key of this run back. Returns false for a key that is none of ours. */
bool key_parse(const char *text, size_t len, const char *run_id, struct store_key *ret);

/* The length of "/rankrun/<run_id>/", with which all keys of a run and its ranges begin; 0: it is
 * not there. */
size_t key_run_length(const char *text, size_t len);
/* Whether it is a key that an agent would write, of whatever run. */
bool key_is_of_a_run(const char *text, size_t len);

/* 0, or -EINVAL with a sentence: empty, or too long. */
int key_run_id_check(const char *run_id, struct err *err);

/* The id of the lease that all keys of an incarnation hang on: never 0. */
int64_t key_lease(const char inc[INC_SIZE]);
