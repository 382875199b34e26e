/* timeline: the state of each line of a scenario's timeline while it is played. Shared by
 * timeline.c (when) and firing.c (what). */
#pragma once

#include "harness/run/targets.h"

enum act_state {
    ACT_WAITING,   /* for `after` or `round` */
    ACT_LOOKING,   /* for its step, event or time */
    ACT_DELAYED,   /* `plus` is running */
    ACT_INJECTING, /* answers of targets are outstanding */
    ACT_DONE,      /* in force, as often as asked */
    ACT_FAILED,    /* will not fire any more */
};

struct act {
    struct timeline *owner;
    const struct plan_action *plan;
    const struct action *action;
    int tag; /* of the senders it holds */
    enum act_state state;
    bool step_met, event_met, time_met;
    int events;           /* of its kind since it began looking */
    int fired, in_force;  /* how often */
    int round_base;       /* rounds there were when times: each-round last fired */
    int64_t condition_ns; /* when the last condition came true */
    int64_t fired_ns;
    struct bound *bound; /* of the newest firing */
    size_t bound_n, answers;
    bool felt;  /* evidence of the newest firing is in */
    bool lasts; /* in force and to be recovered */
    char error[200];
    struct loop_source *time, *plus, *within, *until;
};

struct timeline {
    struct engine *engine;
    struct act *acts;
    size_t n;
    bool started, finished;
};

/* firing.c */
void act_fire(struct act *a);
void act_answered(struct act *a, const char *error);
void act_seen(struct act *a, const struct record *r); /* looks for evidence */
void act_recover(struct act *a);

/* timeline.c */
void act_look_again(struct act *a); /* after it came in force: times */
void act_fail(struct act *a, const char *why);
