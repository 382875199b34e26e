/* state: what the files of the rendezvous share; nobody outside agent/core includes it.
 *
 * Every step is the same three moves: the event is written into the state; then each part looks at
 * the whole state and asks for what is missing (the *_advance functions, until none has anything
 * more to ask); then the timer is set for the earliest time a part named. No part remembers why it
 * was called, so a lost reply, a repeated event and a restart need no code of their own. */
#pragma once

#include "agent/core/rendezvous.h"
#include "base/rand.h"

#include <stdarg.h>
#include <string.h>

/* A request to the store. Only whether it came through is used of a reply, never what was decided
 * by it: that is read from the state. */
struct request {
    uint64_t id;      /* of the one under way, 0: none */
    int64_t retry_ns; /* not before */
    int64_t floor;    /* the newest revision that was known when it was sent */
    int64_t head;     /* the head that was, */
    int64_t lead;     /* and the lead, or its end */
    bool settled;     /* came through: it was applied, or never can be */
};

enum session_phase {
    SESSION_READ_CUR,
    SESSION_GRANT,
    SESSION_PUT_CUR,
    SESSION_READ_HEAD,
    SESSION_READ_FORMER, /* another attempt's incarnation, to be replaced */
    SESSION_JOIN,
    SESSION_CHECK, /* whether a join without a reply was applied */
    SESSION_ACTIVE,
    SESSION_LOST, /* revoked: workers are being killed, then a new one is begun */
};

/* Another attempt's incarnation that is to be replaced, as it was read. */
struct former {
    bool set;     /* cur is to be replaced by the next T0 */
    bool live;    /* that was refused: a session of it still beats, or its head has moved */
    bool settled; /* it is closed, and each member of its last round has a certificate */
    int64_t revision, head_revision;
    int64_t round;         /* the latest there */
    int64_t not_before_ns; /* monotonic */
};

struct session {
    enum session_phase phase;
    char uid[UID_SIZE];
    int64_t revision; /* C(s/uid) */
    struct request request;
    char new_inc[INC_SIZE]; /* offered for cur */
    struct former former;
    bool quarantine; /* the store says that it has come back */
    bool created;    /* cur is this agent's */
    bool ever;       /* a session of this agent has existed */
    int64_t beat_seq, beat_sent_boottime_ns, beat_next_ns;
    bool beat_out;
    int64_t good_ns; /* the last beat that was accepted, in any session; 0: none was */
    bool offered;    /* an incarnation, since that */
    bool again;      /* what was begun since that has come to nothing */
    int64_t join_sent_boottime_ns;
    int64_t deadline_ns; /* CLOCK_BOOTTIME; 0: none yet */
    struct request leave;
    bool leave_without_lead, leave_had_lead;
    int64_t leave_since_ns; /* 0: not begun */
};

/* Own place in a plan. */
struct plan_place {
    char pid[PID_SIZE];
    bool known, present;
    struct plan_value value;
};

enum group_state { GROUP_IDLE, GROUP_STARTING, GROUP_RUNNING };

struct group {
    enum group_state state;
    int64_t round; /* of the group that lives or lived last; 0: none yet */
    int workers, exited;
    bool stopping, killed, failed, fenced, ok, stuck;
    bool looked;                    /* once more, after the time to be reaped was over */
    int64_t kill_by_ns, reap_by_ns; /* while stopping */
    struct failure failure;
    struct request end, done, ack;
    int64_t floor;      /* no round below it is ever started */
    int64_t ack_round;  /* of the ack under way */
    int64_t acked;      /* highest `last` acked under this uid, -1: none */
    int64_t port_round; /* the port is for the ack of this `last`; -1: none */
    bool port_asked;
    char addr[NAME_SIZE];
    int port;
};

/* The coordinator, as the others see it. */
struct holder {
    char uid[UID_SIZE];
    bool known, present;
    int64_t beat_revision, heard_ns;
    bool excused; /* as a member's */
    struct request read;
    struct request take;
    int64_t wish_since_ns; /* 0: none */
    int rank;              /* of the wish when not in the plan */
};

/* A successor that is to know what the coordinator knows; see standby.c. */
struct standby {
    bool on;
    struct request read; /* of the holder's place */
    char pid[PID_SIZE], uid[UID_SIZE];
    bool known;
    int rank; /* group rank of uid in pid, -1: it has none */
};

/* This session's lifeline. */
struct lifeline {
    uint64_t id; /* of the one that is open or being opened, 0: none */
    bool open;
    int64_t retry_ns; /* not before */
};

/* How it stands with the store. */
struct contact {
    int64_t heard_ns;    /* monotonic; 0: never. While writes are denied only of one that is done */
    int64_t patience_ns; /* it is not given up before: this agent has slept; 0: it has not */
    bool excused;        /* patience_ns is that of a stall since then */
    bool missed;         /* a request since then had no answer */
    bool denied;         /* one that would write had none, or was refused */
    bool answers;        /* since that, others were answered */
    bool wrote;          /* something, ever */
    bool told;           /* people were told so */
};

/* --- the coordinator's view --- */

struct member {
    char uid[UID_SIZE];
    bool known; /* value is set */
    struct member_value value;
    bool session;
    int64_t created, beat_revision; /* 0 without a session */
    int64_t heard_ns;               /* receipt of what carries beat_revision */
    bool excused;                   /* its silence began anew with a stall of this agent's */
    int64_t joined_ns;              /* receipt of the session */
    bool gone, acked, done;         /* ack and done: of head.last_round */
    int64_t gone_revision, ack_revision, done_revision;
    struct ack_value ack;
    struct plan_value place; /* in the plan of head */
    bool returned;           /* not in last, but its node was */
    int rank_now, rank_last; /* group rank in the plan of head, of last; -1: not in it */
    struct request revoke;
    int64_t beats_since_ns; /* receipt of the first beat after a gap */
    int64_t owes_since_ns;  /* an ack is asked of it; 0: none is */
};

struct plan_entry {
    struct member *member;
    struct plan_value value;
};

struct round_plan {
    char pid[PID_SIZE];
    struct plan_entry *entries;
    size_t n, cap;
};

struct view {
    int64_t revision;
    int64_t gap_ns;          /* beats further apart than this do not follow each other */
    struct member **members; /* by uid */
    size_t n, cap;
    struct round_plan *plans;
    size_t n_plans, cap_plans;
    int64_t head_revision;
    struct head_value head;
    int64_t lead_revision; /* 0: none */
    bool dirty;            /* something that can change a place has changed since view_settle */
    bool changed;          /* something other than a beat, since the coordinator last looked */
};

struct coordinator {
    struct request read;
    bool loaded;
    struct view view;
    /* The next change of head: not before the view has passed this revision, or the time came. */
    struct request decide;
    int64_t decide_after;
    int64_t n_plans;    /* proposed so far, for the next pid */
    char pid[PID_SIZE]; /* of the plan being written, "" : none */
    int64_t pid_head;   /* for this revision of head */
    size_t pid_n;
    int64_t enough_since_ns, below_since_ns; /* >= min, < min; 0: not */
    int doubled_told;                        /* people know of this seat that several came for */
    int64_t since_ns;                        /* receipt of the first snapshot of this incarnation */
    bool pause_told;
    bool hold_told;
    int64_t cleaned_round;
    struct request clean;
    struct request lease;
    bool claimed;
    int64_t wake_ns; /* nothing is to be done before, unless the view changes */
};

struct rendezvous {
    struct rendezvous_config config;
    struct arena strings, arena; /* for ever; for the step */
    struct rand rand;
    struct action *actions;
    size_t n_actions, cap_actions;
    uint64_t next_id;

    struct now now, last;
    int64_t start_ns; /* monotonic */
    struct contact contact;
    int64_t wake_ns, due_ns;

    bool has_cur;
    struct cur_value cur;
    struct head_value head;   /* HEAD_NONE: there is none */
    int64_t head_revision;    /* of the newest change seen, also of a deletion */
    int64_t ran_ns, ended_ns; /* when the last round was seen to run, and no more; 0: not counted */
    char lead[UID_SIZE];
    int64_t lead_revision, lead_seen; /* M(lead), 0: absent; of the newest change seen */

    uint64_t generations[WATCH_SLOTS]; /* 0: off */
    bool watch_lost[WATCH_SLOTS];
    struct request reread; /* head and lead, after a watch was lost */

    struct session session;
    struct plan_place places[2];
    int64_t places_head; /* of this revision of head both places are known; 0: not looked yet */
    struct request read_places;
    char asked_pids[2][PID_SIZE];
    struct group group;
    struct lifeline lifeline;
    struct holder holder;
    struct standby standby;
    struct coordinator coordinator;

    struct past past;  /* of the newest incarnation in which a round ran */
    struct charge {    /* failures of this node's own workers that cost a restart */
        int64_t round; /* that was acked as failed, and is not settled yet; 0: none */
        int count;
    } charge;

    /* The newest of this incarnation that the store has told, of what was asked since it is ours.
     */
    int64_t known_revision;
    uint64_t known_since; /* the first id of these */

    int signo; /* leaving on it; 0: not */
    bool giving_up, over;
    bool stranger; /* giving up, because the store is not the one that was known */
    int outcome_code;
};

/* --- request.c: actions, keys, transactions, timers --- */

struct draft; /* a transaction being written, in the step's arena */

struct action *action_add(struct rendezvous *r, enum action_kind kind);
void action_log(struct rendezvous *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void action_claim(struct rendezvous *r, const char *what, int64_t round);
void action_store(struct rendezvous *r, bool lost, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct action *action_exit(struct rendezvous *r, int code, const char *text,
                           const struct failure *failure);
void action_watch(struct rendezvous *r, enum watch_slot slot, struct store_key key, int64_t from);
void action_unwatch(struct rendezvous *r, enum watch_slot slot);

struct store_key key_job(const struct rendezvous *r, enum key_kind kind); /* with the incarnation */
struct store_key key_all(const struct rendezvous *r, enum key_kind kind); /* its whole scope */
struct store_key key_own(const struct rendezvous *r, enum key_kind kind); /* of this uid */
struct store_key key_of(const struct rendezvous *r, enum key_kind kind, const char *uid);

struct draft *draft_new(struct rendezvous *r);
void draft_compare(struct draft *d, struct store_key key, enum compare_target target,
                   int64_t equals);
void draft_compare_below(struct draft *d, struct store_key key, int64_t mod_below);
void draft_compare_session(struct rendezvous *r, struct draft *d); /* C(s/own) = mine */
/* Puts a value of the kind's type, zeroed, to be filled by the caller. */
union value *draft_put(struct rendezvous *r, struct draft *d, struct store_key key);
void draft_delete(struct draft *d, struct store_key key);
size_t draft_ops(const struct draft *d);
struct txn draft_txn(const struct rendezvous *r, const struct draft *d);

/* Most uids differ in their first digit. */
static inline bool uid_is(const char *a, const char *b) {
    return a[0] == b[0] && strcmp(a, b) == 0;
}

/* Nothing under way and the time has come; else the timer is set for it. */
bool request_may(struct rendezvous *r, const struct request *q);
void request_txn(struct rendezvous *r, struct request *q, const struct draft *d);
void request_snapshot(struct rendezvous *r, struct request *q, const struct store_key *keys,
                      size_t n);
/* Whether the reply is to this one; notes that it came, or when to try again. */
bool request_reply(struct rendezvous *r, struct request *q, uint64_t id, bool reached);
/* The same of a SNAPSHOT, and that there is something to read. */
bool request_read(struct rendezvous *r, struct request *q, const struct event *ev);
/* What was read as a watch had ended is not read again at once, should the next one end as well: a
 * store that answers reads and refuses watches would be asked for ever. */
void request_rest(struct rendezvous *r, struct request *q);
/* The first key of that kind in a SNAPSHOT; NULL: none was there. */
const struct entry *snapshot_find(const struct event *ev, enum key_kind kind);

void wake_at(struct rendezvous *r, int64_t monotonic_ns);
void wake_at_boottime(struct rendezvous *r, int64_t boottime_ns);
void uid_draw(struct rendezvous *r, char uid[UID_SIZE]);

/* --- the parts --- */

/* leave.c: how it stands with the store */
void contact_made(struct rendezvous *r, bool wrote);    /* the store has answered, whatever */
void contact_missed(struct rendezvous *r, bool writes); /* a request was not answered */
/* This agent did not run for a while, at least for late_ns of CLOCK_MONOTONIC. */
void contact_stalled(struct rendezvous *r, int64_t late_ns);
void contact_rest(struct rendezvous *r, int64_t until_ns); /* it asks for nothing until then */
/* It is given up at once: it is not the one that was known. */
void contact_stranger(struct rendezvous *r, int64_t revision, int64_t known);
const char *contact_text(struct rendezvous *r); /* why it is given up */
void contact_advance(struct rendezvous *r);

void session_init(struct rendezvous *r);
void session_advance(struct rendezvous *r);
void session_snapshot(struct rendezvous *r, const struct event *ev);
void session_done(struct rendezvous *r, const struct event *ev);
void session_beat(struct rendezvous *r, const struct event *ev);
bool session_armed(const struct rendezvous *r); /* deadlines are kept at all */
bool session_in_time(const struct rendezvous *r);
int64_t session_lease_ttl_s(const struct timing *t);
/* T3 or the last delete, then EXIT; called when there is a reason to end and no worker lives. */
void leave_advance(struct rendezvous *r);
void leave_done(struct rendezvous *r, const struct event *ev);
bool leave_due(const struct rendezvous *r);

/* lifeline.c: the agent's side */
void lifeline_advance(struct rendezvous *r);
void lifeline_drop(struct rendezvous *r);
bool lifeline_inherit(struct rendezvous *r); /* a group is about to start: whether it holds it */
void lifeline_event(struct rendezvous *r, const struct event *ev);

/* worker_group.c */
void group_init(struct rendezvous *r);
void group_new_session(struct rendezvous *r);
void group_advance(struct rendezvous *r);
void group_event(struct rendezvous *r, const struct event *ev);
void group_done(struct rendezvous *r, const struct event *ev);
void group_kill(struct rendezvous *r);
void group_tell_again(struct rendezvous *r); /* what it has told the store of its round */
void group_stalled(struct rendezvous *r, int64_t late_ns); /* as contact_stalled */
/* The longest an ordinary stop can take until this agent gives up on its workers. */
int64_t group_stop_ns(const struct rendezvous *r);

/* lead.c */
void lead_advance(struct rendezvous *r);
void lead_snapshot(struct rendezvous *r, const struct event *ev);
void lead_changes(struct rendezvous *r, const struct event *ev);
void lead_done(struct rendezvous *r, const struct event *ev);
bool lead_is_own(const struct rendezvous *r);

/* standby.c: who holds the coordinator's view before it has to */
void standby_advance(struct rendezvous *r);
void standby_snapshot(struct rendezvous *r, const struct event *ev);

/* watch.c: head and lead, as every agent follows them, and its own place in their plans */
void watch_note_past(struct rendezvous *r);
void watch_begin(struct rendezvous *r, int64_t revision);
void watch_head_entry(struct rendezvous *r, const struct entry *e);
void watch_lead_entry(struct rendezvous *r, const struct entry *e);
/* Head and lead as a snapshot shows them; what is not among its entries was not there. */
void watch_take(struct rendezvous *r, const struct event *ev);
void watch_advance(struct rendezvous *r);
void watch_snapshot(struct rendezvous *r, const struct event *ev);
const struct plan_place *place_in(const struct rendezvous *r,
                                  const char *pid); /* NULL: not known */
void place_advance(struct rendezvous *r);
void place_snapshot(struct rendezvous *r, const struct event *ev);

/* rendezvous.c */
void rendezvous_own(struct rendezvous *r, const struct rendezvous_config *config); /* its strings */

/* copy.c */
void view_copy(struct view *to, const struct view *from); /* to: uninitialized */

/* view.c */
void view_fini(struct view *v);
/* A snapshot of the whole incarnation; silence goes on where the beat is the same as before. */
void view_load(struct view *v, const struct entry *entries, size_t n, int64_t revision,
               int64_t now_ns);
void view_apply(struct view *v, const struct entry *e, int64_t now_ns);
/* Places of all members, after a change. */
void view_settle(struct view *v);
struct member *view_find(const struct view *v, const char *uid); /* NULL: none */
const struct round_plan *view_plan(const struct view *v, const char *pid);

/* budget.c */
bool budget_settled(const struct view *v); /* a certificate for every member of last */
int budget_cost(const struct view *v);

/* membership.c */
struct wanted {
    struct member **members; /* in the order of their ranks; NULL: too few for the first round */
    size_t n;
    int doubled; /* a seat that several came for; 0: none */
};
struct wanted membership_wanted(struct rendezvous *r);
/* What the members bring of incarnations that this store has forgotten. */
struct memory {
    int64_t round; /* the latest that ran there; 0: nobody brings anything */
    int restarts;
    bool missing; /* a member of that round is not here: its workers may live */
};
struct memory membership_memory(const struct rendezvous *r);
bool membership_lost(const struct view *v);
/* A member of the last round that is gone and was not done with it; NULL: there is none. */
const struct member *membership_missed(const struct view *v);
/* Members that would be taken but are in no plan yet; *ret_joined_ns: when the last one came. */
bool membership_newcomers(const struct wanted *w, int64_t *ret_joined_ns);

/* ranks.c */
void ranks_assign(const struct wanted *w, struct plan_value *ret);

/* detector.c */
void detector_stalled(struct rendezvous *r, int64_t late_ns); /* as contact_stalled */
/* How long the member may owe an ack before it is evicted. */
int64_t detector_evict_ns(const struct rendezvous *r, const struct member *m);
void detector_advance(struct rendezvous *r);
bool detector_done(struct rendezvous *r, const struct event *ev);

/* coordinator.c */
void coordinator_advance(struct rendezvous *r);
void coordinator_snapshot(struct rendezvous *r, const struct event *ev);
void coordinator_changes(struct rendezvous *r, const struct event *ev);
void coordinator_done(struct rendezvous *r, const struct event *ev);
/* decide.c: the transitions of head */
#define DECIDE_HOUR_NS 3600000000000LL /* of max_free_rounds */
void decide_advance(struct rendezvous *r);
void decide_done(struct rendezvous *r, const struct event *ev);
