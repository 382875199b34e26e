/* act: the state of each line of a scenario's timeline while it is played. The inside of the part
 * timeline: timeline.c, trigger_match.c and deferral.c (when), targets.c and inquiry.c (whom), firing.c
 * (what), evidence.c and evidence/ (whether it was felt). */
#pragma once

#include "harness/run/targets.h"
#include "harness/run/timeline.h"

enum act_state {
    ACT_WAITING,   /* for `after` or `round` */
    ACT_LOOKING,   /* for its step, event or time */
    ACT_DELAYED,   /* `plus` is running */
    ACT_PATIENT,   /* its moment has come, its target is not there yet */
    ACT_ASKING,    /* its moment has come, the store is to say whom it means */
    ACT_INJECTING, /* answers of targets are outstanding */
    ACT_DONE,      /* in force, as often as asked */
    ACT_FAILED,    /* will not fire any more */
};

/* Where a sticky fault comes again. */
struct stuck {
    struct node *node;
    int local_rank; /* of the worker that was struck there; -1: none was */
    bool back;      /* its agent has come back, the fault not yet */
};

struct act {
    struct timeline *owner;
    const struct plan_action *plan;
    const struct timeline_entry *action;
    struct act *end; /* waits for its until; NULL: it has none */
    struct act *of;  /* this is the end of that line, not a line itself; NULL: it is a line */
    int tag;         /* of the senders it holds */
    enum act_state state;
    bool step_met, event_met, phase_met, time_met, log_met;
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
    struct inquiry *inquiry; /* while it is asking */
    bool felt;               /* evidence of the newest firing is in */
    bool lasts;              /* in force and to be recovered */
    char error[200];
    struct loop_source *time, *plus, *within, *until;
};

struct timeline {
    struct engine *engine;
    struct rand rand; /* of all draws, in the order in which lines fire */
    struct act *acts; /* the lines, as in the plan, then what waits for the end of some */
    size_t n;
    bool started, finished;
    bool steps_seen;
    int64_t steady_ns; /* 0: not yet */
};

/* firing.c */
struct json_writer *act_record(const struct act *a, enum source s, const char *kind); /* id, n */
void act_fire(struct act *a);
void act_fire_again(struct act *a); /* a sticky one, if there is what it strikes */
void act_answered(struct act *a, const char *error);
void act_told(struct act *a, const char *node, const char *why); /* whom it means; NULL: nobody */
void act_recover(struct act *a);
void act_let_go(struct act *a); /* of what it holds for its end */

/* evidence.c */
void evidence_begin(struct act *a); /* it is about to be brought in force */
void evidence_look(struct act *a);  /* records that it was felt, when that can be seen now */
void evidence_end(struct act *a);   /* it is about to be undone */
void evidence_close(struct act *a); /* records why nothing was seen, when nothing was */
bool evidence_answers(const struct act *a);               /* it is in force when it is felt */
bool act_cuts_off(const struct act *a, const char *node); /* from the store, as long as it lasts */
void act_seen(struct act *a, const struct record *r);

/* trigger_match.c: whether what is told concerns the target of this line. */
bool act_hears(const struct act *a, const struct record *r); /* an event of a worker */
bool act_hears_step(const struct act *a, const struct record *r);
bool act_hears_line(const struct act *a, const char *node, pid_t pid); /* as timeline_heard */
const char *phase_kind(const char *phase); /* the kind of event that tells of it */
bool phase_forms_round(const char *phase); /* it lies before the first worker of its round */
/* Whether this record tells that the target has come to the phase of its trigger. */
bool act_reaches_phase(struct act *a, const struct record *r);

/* inquiry.c: whom the store means, for coordinator and store-leader. act_told follows. */
bool act_asks(const struct act *a);
void act_ask(struct act *a);
void act_ask_no_more(struct act *a); /* act_told does not follow any more */

/* timeline.c */
void act_look_again(struct act *a); /* after it came in force: times */
void act_rest(struct act *a);       /* what it was to end has ended: until that begins again */
void act_fail(struct act *a, const char *why);

/* deferral.c: whether what it would hit now is nothing, or about to go, and it is patient */
bool act_must_wait(const struct act *a, const struct bound *found, size_t n);
void act_wait_for_target(struct act *a); /* until act_may_find_target, or for `within` */
bool act_may_find_target(const struct record *r);
/* ... and whether a sticky one has to come again */
void act_stick(struct act *a); /* to the nodes that it has just struck */
bool act_comes_again(struct act *a, const struct record *r);
bool act_is_due(const struct act *a); /* a node is back that it has not struck again */
size_t act_find_again(struct act *a, struct bound ret[TARGETS_MAX]); /* as targets_resolve */
