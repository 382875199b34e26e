/* schedule: faults at times, put behind the timeline that the file has. It keeps count of which
 * nodes are there, so that what is added can happen: never fewer nodes than the job needs, nothing
 * on a node that is away, and a node that was lost comes back. Private to this room. */
#pragma once

#include "harness/scenario/reader.h"

/* What a schedule can do to a node, by the name of the fault. */
enum hit {
    HIT_WORKER, /* a worker dies: a restart */
    HIT_HANG,   /* a worker stands still for a while */
    HIT_END,    /* the node is gone until it is switched on again */
    HIT_CUT     /* the node is cut off for a while */
};

struct hit_kind {
    const char *fault;
    enum hit hit;
};
/* All of them, in alphabetical order. The first is made by FIRST and the others by NEXT, so that
 * texts can be made of them, which need something between two. */
#define HIT_KINDS(FIRST, NEXT)                                                                     \
    FIRST("net-partition", HIT_CUT)                                                                \
    NEXT("node-kill", HIT_END)                                                                     \
    NEXT("node-leave", HIT_END)                                                                    \
    NEXT("node-poweroff", HIT_END)                                                                 \
    NEXT("worker-exit", HIT_WORKER)                                                                \
    NEXT("worker-hang", HIT_HANG)                                                                  \
    NEXT("worker-kill", HIT_WORKER)
#define HIT_NAME(fault, hit)      fault
#define HIT_NEXT_NAME(fault, hit) ", " fault
#define HIT_NAMES                 HIT_KINDS(HIT_NAME, HIT_NEXT_NAME)
extern const struct hit_kind hit_kinds[];           /* ended by {0} */
const struct hit_kind *hit_find(const char *fault); /* NULL: no schedule draws it */

/* How often which fault happens, as somebody counted it. */
struct weight {
    const char *fault;
    double share;
};
struct weights {
    const char *name, *text;
    struct weight v[8]; /* ended by {0} */
};
extern const struct weights weights[]; /* in alphabetical order, ended by {0} */

struct schedule {
    struct reader *r;
    const char *prefix;      /* of the ids */
    struct place place;      /* of what it came from */
    int nodes, least, fixed; /* running ones; at least so many stay; the node of the store, -1 */
    bool spares;             /* some of them have no workers, nobody knows which */
    int64_t *away_until;     /* by node, ns since the steady state; 0: it is there */
    struct action *v;
    size_t n, faults;
    int64_t last_ns;
};

enum { SCHEDULE_MAX = 1000 }; /* lines */
#define SCHEDULE_FOR_EVER INT64_MAX

/* False after adding an error: ids of the timeline that are its own. */
bool schedule_begin(struct schedule *q, struct reader *r, const char *prefix, struct place p);
/* NULL, or in the arena why that cannot be done to the node then. */
const char *schedule_why_not(const struct schedule *q, const struct hit_kind *k, int node,
                             int64_t at_ns);
/* Adds it; what is not HIT_WORKER lasts so long, or SCHEDULE_FOR_EVER. */
void schedule_add(struct schedule *q, const struct hit_kind *k, int node, int worker, int64_t at_ns,
                  int64_t lasts_ns);
/* Puts all of it behind the timeline, and the note to what people are told. */
void schedule_end(struct schedule *q, const char *note);
