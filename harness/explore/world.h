/* world: one state of everything: agents, store, messages, guards and workers. For this room. */
#pragma once

#include "harness/explore/explore.h"
#include "harness/invariants/judge.h"

/* A heartbeat: the step of time. The others are the profile's proportions. */
#define EXPLORE_STEP_NS 400000000LL

enum { PENDING_MAX = 16, PIPE_MAX = 8, LOG_MAX = 96, SLOTS = 2 };

enum explore_fault {
    BOUND_AGENT_JOIN,
    BOUND_AGENT_KILL,
    BOUND_AGENT_LEAVE,
    BOUND_AGENT_STOP,
    BOUND_ANSWER_LOST,
    BOUND_ANSWER_SLOW,
    BOUND_NODE_CUT,
    BOUND_NODE_STOP,
    BOUND_REQUEST_LATE,
    BOUND_WATCH_LOST,
    BOUND_WATCH_SLOW,
    BOUND_WORKER_FAIL,
};

/* Cores and stores are shared by the states that have them alike, and copied before a change. */
struct core_share {
    size_t refs;
    struct rendezvous *r;
    struct canonical seen;
    bool touched; /* since seen */
};

struct store_share {
    size_t refs;
    struct kv *kv;
    struct canonical seen;
    bool touched;
};

struct explore_message {
    size_t refs;
    enum action_kind kind;
    uint64_t id; /* of a beat: its seq */
    char uid[UID_SIZE];
    struct arena arena;
    struct kv_txn txn;
    struct op *ops; /* as the core wrote them, for the judge */
    size_t n_ops;
    int64_t lease, ttl_s;
    struct canonical seen; /* without the id */
};

struct pending {
    struct explore_message *message;
    int64_t sent_ns;
    bool held;     /* on its way for as long as it likes */
    bool ghost;    /* nobody waits for an answer any more */
    bool answered; /* the answer is on its way */
    bool slow;     /* ... for as long as it likes */
    bool deaf;     /* the answer is lost */
    bool applied;
    int64_t revision;
};

/* One change of the store, for whoever watches. */
struct change {
    size_t refs;
    struct entry entry;
    union value value;
    struct canonical seen;
};

struct explore_stream {
    uint64_t generation; /* 0: none */
    char uid[UID_SIZE];  /* of WATCH_HOLDER */
    char inc[INC_SIZE];
    int at; /* the first of the log that is not delivered */
    bool slow;
};

/* What a guard has to tell its agent, in order. */
enum pipe_kind { PIPE_ONE_FAILED, PIPE_DEAD, PIPE_GUARD_DEAD, PIPE_NEVER_BORN };
struct pipe_item {
    enum pipe_kind kind;
    int status;
    bool fenced;
    int exited; /* of its workers that had been told of before */
};

struct explore_node {
    struct judged_node shown; /* the first: the judge finds it there */
    struct core_share *core;  /* NULL: no agent */
    int joins;                /* attempts of this life, so that names differ */
    bool stopped, guard_stopped, cut;
    int64_t timer_ns, fence_ns; /* fence: of the guard; 0: none */
    struct explore_stream streams[WATCH_SLOTS];
    struct pending pending[PENDING_MAX];
    int n_pending;
    struct pipe_item pipe[PIPE_MAX];
    int n_pipe;
    bool stopping; /* its workers */
};

struct world {
    const struct explore_config *config;
    int64_t now_ns;
    struct store_share *store;
    struct explore_node nodes[EXPLORE_AGENTS_MAX];
    struct change *log[LOG_MAX];
    int n_log;
    uint8_t left[EXPLORE_BOUNDS_N], together;
    /* Judged. rounds: completed; whole: the one all of whose workers have lived at one time. */
    struct judge judge;
    struct judged_member last[EXPLORE_AGENTS_MAX], form[EXPLORE_AGENTS_MAX];
    bool ranks[EXPLORE_AGENTS_MAX * SLOTS];
    bool was_cut;
    int rounds;
    int64_t whole_round;
    /* Of the step that led here, not of the state. */
    bool trace, quiet_beats, beat_seen;
    enum beat_way { BEAT_PROMPT, BEAT_LOST, BEAT_LATE, BEAT_SLOW } beat_way;
    bool violated;
    char *text; /* what is; NULL: nothing */
};

/* --- world.c --- */

struct world *world_new(const struct explore_config *config, bool trace);
struct world *world_copy(const struct world *from);
void world_free(struct world *w);
/* After a step: what nobody waits for any more is forgotten. Then the fingerprint may be asked. */
void world_settle(struct world *w);
uint64_t world_fingerprint(const struct world *w);
uint64_t world_bytes(void); /* of all that live, about */
bool world_is_over(const struct world *w);
bool world_is_bounded(const struct world *w);
struct now world_now(const struct world *w);
void world_violation(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void world_say(const struct world *w, int node, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* --- likeness.c: what of a core and a store makes states differ --- */

/* ids: as in rendezvous_canonical. */
void likeness_core(const struct rendezvous *r, uint64_t ids, struct canonical *seen);
void likeness_store(struct kv *kv, struct canonical *seen);
void likeness_revisions(struct canonical *c, const struct store_key *key, int64_t create,
                        int64_t mod);

/* --- agent.c --- */

void agent_boot(struct world *w, int node);
void agent_event(struct world *w, int node, const struct event *ev);
void agent_gone(struct world *w, int node);

/* --- message.c: what goes to the store and comes back --- */

void message_act(struct world *w, int node, const struct action *a);
void message_free(struct explore_message *m);
bool message_writes(const struct explore_message *m);
/* Arrives at the store; `answer`: the reply is there at once. */
void message_serve(struct world *w, int node, int index, bool answer);
void message_reply(struct world *w, int node, int index);
void message_timeout(struct world *w, int node, int index);
void message_drop(struct world *w, int node, int index);
/* The beat just sent goes its way. */
void message_beat(struct world *w, int node);

/* --- stream.c: watches --- */

void stream_append(struct world *w, const struct kv_event *event);
/* Whether changes wait that this stream, or a stream of this node that is not slow, is to hear of.
 */
bool stream_waits(const struct world *w, int node, int slot);
bool stream_hears(const struct world *w, int node);
/* The node hears of the next revision, on all its streams that are not slow; or of one stream's. */
void stream_deliver(struct world *w, int node);
void stream_deliver_slot(struct world *w, int node, int slot, bool all);
/* What is nothing but a beat goes at once to who has all before it. */
void stream_beats(struct world *w);
void stream_trim(struct world *w);
bool stream_wants(const struct explore_stream *s, int slot, const struct change *c);
void change_free(struct change *c);

/* --- machine.c: guards and workers --- */

void machine_start(struct world *w, int node, const struct round_spec *spec);
void machine_stop(struct world *w, int node);
void machine_die(struct world *w, int node, int status, bool by_fence, bool guard_died);
void machine_succeed(struct world *w, int node);
void machine_fail(struct world *w, int node);
void machine_tell(struct world *w, int node); /* the first of the pipe to the agent */

/* --- judging.c --- */

void world_judge_init(struct world *w);
/* The judge, who sees this state of this world. */
struct judge *world_judge(struct world *w);

/* --- choice.c --- */

enum choice_kind {
    CHOICE_TICK,
    CHOICE_TIMER,
    CHOICE_TELL,
    CHOICE_SERVE,
    CHOICE_REPLY,
    CHOICE_TIMEOUT,
    CHOICE_HEAR,
    CHOICE_TERMED,
    CHOICE_ORPHANED,
    CHOICE_FENCE,
    CHOICE_HARD,
    CHOICE_SUCCEED,
    CHOICE_RESUME,
    CHOICE_HEAL,
    CHOICE_ARRIVE,
    CHOICE_VANISH,
    CHOICE_UNSLOW,
    /* From here on: faults, counted. */
    CHOICE_FAULTS,
    CHOICE_JOIN = CHOICE_FAULTS,
    CHOICE_KILL,
    CHOICE_LEAVE,
    CHOICE_STOP,
    CHOICE_STOP_NODE,
    CHOICE_CUT,
    CHOICE_HOLD,
    CHOICE_LOSE,
    CHOICE_SLOW,
    CHOICE_BEAT_LOST,
    CHOICE_BEAT_LATE,
    CHOICE_BEAT_SLOW,
    CHOICE_BEAT_UNSEEN,
    CHOICE_WATCH_LOST,
    CHOICE_WATCH_SLOW,
    CHOICE_FAIL,
    CHOICES_N
};

struct choice {
    uint8_t kind, node, arg;
};

enum { CHOICES_MAX = 256 };
int choice_list(const struct world *w, struct choice ret[CHOICES_MAX]);
/* Takes it. Returns false when there was nothing to it after all. */
bool choice_take(struct world *w, struct choice c);
const char *choice_name(struct choice c);
bool choice_find(const char *name, uint8_t *ret_kind);
