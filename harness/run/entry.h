/* entry: the state of each entry of a scenario's timeline while it is played. The inside of the
 * part timeline: timeline.c, trigger_match.c and deferral.c (when), targets.c and inquiry.c (whom),
 * firing.c (what), evidence.c and evidence/ (whether it was felt). */
#pragma once

#include "faults/mechanism/call_file.h"
#include "harness/run/targets.h"
#include "harness/run/timeline.h"

enum entry_state {
    ENTRY_WAITING,   /* for `after` or `round` */
    ENTRY_LOOKING,   /* for its step, event or time */
    ENTRY_DELAYED,   /* `plus` is running */
    ENTRY_PATIENT,   /* its moment has come, its target is not there yet */
    ENTRY_ASKING,    /* its moment has come, the store is to say whom it means */
    ENTRY_INJECTING, /* answers of targets are outstanding */
    ENTRY_DONE,      /* in force, as often as asked */
    ENTRY_FAILED,    /* will not fire any more */
};

/* Where a sticky fault comes again. */
struct stuck {
    struct node *node;
    int local_rank; /* of the worker that was struck there; -1: none was */
    bool back;      /* its agent has come back, the fault not yet */
};

struct run_entry {
    struct timeline *owner;
    const struct planned_entry *plan;
    struct fault_course course; /* of its fault, with its arguments */
    const struct timeline_entry *entry;
    struct fault_args args; /* of the newest firing: the plan's, and the groups of a shape */
    struct run_entry *end;  /* waits for its until; NULL: it has none */
    struct run_entry *of;   /* it is the end of that entry, and not in the file; NULL: it is */
    bool stops;             /* of a break by hand: when it comes true the run stands still */
    int tag;                /* of the senders it holds */
    enum entry_state state;
    bool step_met, event_met, phase_met, time_met, log_met, call_met, request_met;
    bool holds;             /* somebody waits until it is in force */
    struct pattern *log;    /* NULL: it waits for no line */
    size_t lines, nearness; /* heard of its target; of the closest that did not match */
    char closest[120];
    int events;           /* of its kind, its phase or its lines, since it began looking */
    int fired, in_force;  /* how often */
    int round_base;       /* rounds there were when times: each-round last fired */
    int64_t condition_ns; /* when the last condition came true */
    int64_t fired_ns;
    struct bound *bound; /* of the newest firing */
    size_t bound_n, answers;
    struct stuck *stuck; /* of the first firing; NULL: not sticky, or not yet fired */
    size_t stuck_n;
    int again_n;              /* it comes so often more to whom it has struck (course.times) */
    bool again;               /* its time to do so has come, its targets may not be back yet */
    struct store_look *looks; /* what is being read in stores; NULL: nothing */
    size_t looks_open;
    bool overdue;            /* it is to be undone once that has been read */
    struct inquiry *inquiry; /* while it is asking */
    bool looking;            /* what it has struck on other hosts is being looked at */
    bool felt;               /* evidence of the newest firing is in */
    int undone;              /* how often it was undone */
    bool undoing;            /* it is, and not all have said so */
    char undo_error[200];
    bool lasts;     /* in force and to be recovered */
    bool is_undone; /* the newest firing is, or is being */
    char error[200];
    int64_t in_force_ns; /* since when the newest firing has been */
    size_t stepped;      /* so many steps of its profile have begun */
    struct loop_source *time, *plus, *within, *until, *next, *follow, *step;
};

/* A call that waits until the entry with this tag is in force, or a request to the store, on the
 * wire. */
struct waiting {
    struct node *node; /* of the call; NULL: it is a request */
    struct watched_call call;
    uint64_t request;
    int tag;
    bool unheard; /* a call that came before its entry looked again: then it is heard */
};

struct timeline {
    struct engine *engine;
    struct rand rand;          /* of all draws, in the order in which entries fire */
    struct run_entry *entries; /* as in the plan, then what waits for the end of some */
    size_t n;
    bool started, finished;
    bool steps_seen;
    int64_t steady_ns; /* 0: not yet */
    struct waiting *waiting;
    size_t waiting_n;
};

/* firing.c */
struct json_writer *entry_record(const struct run_entry *a, enum source s,
                                 const char *kind); /* id, n */
/* The same of what was stamped at that moment, here or on another host. */
struct json_writer *entry_record_at(const struct run_entry *a, const struct clock_stamp *at,
                                    enum source s, const char *kind);
void entry_fire(struct run_entry *a);
void entry_fire_again(struct run_entry *a); /* a sticky one, if there is what it strikes */
void entry_follow(struct run_entry *a);     /* its second part */
void entry_count_step(struct run_entry *a); /* when the next step of its profile begins */
void entry_come_again(struct run_entry *a); /* the next of its times, if its targets are back */
void entry_inject(struct run_entry *a);     /* into all that it strikes */
void entry_answered(struct run_entry *a, struct bound *b, const char *error); /* b: whether there */
/* It is being injected, and nobody waits for that any more: undone, and has not fired. */
void entry_withdraw(struct run_entry *a, const char *why);
void entry_told(struct run_entry *a, const char *node,
                const char *why);        /* whom it means; NULL: nobody */
void entry_recover(struct run_entry *a); /* what lasts; the record follows when it is undone */
void entry_undone(struct run_entry *a);  /* what is being undone is so, or taken for it */
void entry_node_gone(struct run_entry *a, const char *node); /* no answer comes from there */
void entry_let_go(struct run_entry *a);                      /* of what it holds for its end */

/* evidence.c */
void evidence_begin(struct run_entry *a); /* it is about to be brought in force */
void evidence_look(struct run_entry *a);  /* records that it was felt, when that can be seen now */
void evidence_seen_far(struct run_entry *a); /* what was asked of other hosts has come */
void evidence_in_force(struct run_entry *a); /* the same, once the fault is in force */
void evidence_end(struct run_entry *a);      /* it is about to be undone */
void evidence_close(struct run_entry *a);    /* records why nothing was seen, when nothing was */
/* What is to be read in a store for it, a word of `rankquake inquire store-read`; NULL: nothing. */
const char *evidence_reads(const struct run_entry *a, bool before);
bool evidence_asks_scheduler(const struct run_entry *a); /* that is read of a node's scheduler */
bool evidence_answers(const struct run_entry *a);        /* it is in force when it is felt */
bool entry_cuts_off(const struct run_entry *a,
                    const char *node); /* from the store, as long as it lasts */
void entry_seen(struct run_entry *a, const struct record *r);

/* trigger_match.c: whether what is told concerns the target of this entry. */
bool entry_hears(const struct run_entry *a, const struct record *r); /* an event of a worker */
bool entry_hears_step(const struct run_entry *a, const struct record *r);
bool entry_hears_line(const struct run_entry *a, const char *node,
                      pid_t pid);          /* as timeline_heard */
const char *phase_kind(const char *phase); /* the kind of event that tells of it */
bool phase_forms_round(const char *phase); /* it lies before the first worker of its round */
/* Whether this record tells that the target has come to the phase of its trigger. */
bool entry_reaches_phase(struct run_entry *a, const struct record *r);

/* store_look.c: what our own client reads in the stores that were struck, before and after. */
bool entry_read_store(struct run_entry *a, bool before); /* false: there is nothing to read */
void entry_read_no_more(struct run_entry *a);

/* inquiry.c: whom the store means, for coordinator and store-leader. entry_told follows. */
bool entry_asks(const struct run_entry *a);
void entry_ask(struct run_entry *a);
void entry_ask_no_more(struct run_entry *a); /* entry_told does not follow any more */

/* worker_call.c */
struct worker_call { /* a call by a worker's process */
    const struct watched_call *call;
    struct node *node;
    const struct worker *by;
    char from[CALL_FILE_MAX], to[CALL_FILE_MAX]; /* the file of the job that it is about; "" */
};
/* False: it is about no file, nobody waits for it by its name, or it is of no worker. */
bool worker_call_read(struct timeline *t, struct node *n, const struct watched_call *c,
                      struct worker_call *ret);
void timeline_want_calls(struct timeline *t); /* anew: what other hosts have to tell, and to hold */
/* Whether it is what this trigger waits for. */
bool entry_hears_call(const struct run_entry *a, const struct worker_call *f);
void entry_record_call(const struct run_entry *a, const struct worker_call *f);

/* waiting.c; the tag of `who` is of no matter */
void entry_hold(struct run_entry *a, const struct waiting *who);
/* While entries are told of it, whoever is in force at once lets nobody go for whom others wait. The
 * end says whether anybody waits. */
void timeline_hold(struct timeline *t, const struct waiting *who);
bool timeline_unhold(struct timeline *t, const struct waiting *who);
void entry_release(struct run_entry *a); /* whoever waits for it, and for nobody else */

/* witness.c: the kernel's word on whoever waits for it, when the fault has come in force. */
void entry_record_held(struct run_entry *a);

/* store_operation.c */
void timeline_watch_store(struct timeline *t); /* anew: what the wire has to tell, and to hold */
/* Whether it is what this trigger waits for. */
bool entry_hears_request(const struct run_entry *a, const struct store_request *r);
void entry_record_request(const struct run_entry *a, const struct store_request *r);

/* timeline.c */
void entry_look_again(struct run_entry *a); /* after it came in force: times */
bool entry_will_look_again(
    const struct run_entry *a);       /* once it is in force, which it is not yet */
void entry_rest(struct run_entry *a); /* what it was to end has ended: until that begins again */
void entry_fail(struct run_entry *a, const char *why);

/* deferral.c: whether what it would hit now is nothing, or about to go, and it is patient */
bool entry_must_wait(const struct run_entry *a, const struct bound *found, size_t n);
void entry_wait_for_target(struct run_entry *a); /* until entry_may_find_target, or for `within` */
bool entry_may_find_target(const struct record *r);
/* ... and whether a sticky one has to come again */
void entry_stick(struct run_entry *a); /* to the nodes that it has just struck */
bool entry_comes_again(struct run_entry *a, const struct record *r);
bool entry_is_due(const struct run_entry *a); /* a node is back that it has not struck again */
size_t entry_find_again(struct run_entry *a,
                        struct bound ret[TARGETS_MAX]); /* as targets_resolve */
