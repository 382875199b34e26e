/* schedule: faults at times, put behind the timeline that the file has. It keeps count of which
 * nodes are there, so that what is added can happen: never fewer nodes than the job needs, nothing
 * on a node that is away, and a node that was lost comes back. Private to this room. */
#pragma once

#include "faults/hazards.h"
#include "harness/scenario/reader.h"

/* What a schedule can do to a node, by what a fault does. */
enum hit {
    HIT_NONE,   /* no schedule draws it */
    HIT_WORKER, /* a worker dies: a restart */
    HIT_HANG,   /* a worker stands still for a while */
    HIT_END,    /* the node is gone until it is switched on again */
    HIT_CUT     /* the node is out of reach for a while */
};
enum hit hit_of(const char *fault);
/* Those that can be drawn, in alphabetical order, in the arena; NULL-ended. */
const char *const *hit_names(struct arena *a);
/* The same as a text, with commas. */
const char *hit_list(struct arena *a);
/* How often each is drawn by these counts, in the arena; ended by {0}. */
struct hazard *hit_shares(struct arena *a, const struct hazards *counted);

struct schedule {
    struct reader *r;
    const char *prefix;      /* of the ids */
    struct place place;      /* of what it came from */
    int nodes, least, fixed; /* running ones; at least so many stay; the node of the store, -1 */
    bool spares;             /* some of them have no workers, nobody knows which */
    int64_t *away_until;     /* by node, ns since the steady state; 0: it is there */
    struct timeline_entry *v;
    size_t n, faults;
    int64_t last_ns;
};

enum { SCHEDULE_MAX = 1000 }; /* entries */
#define SCHEDULE_FOR_EVER INT64_MAX

/* False after adding an error: ids of the timeline that are its own. */
bool schedule_begin(struct schedule *q, struct reader *r, const char *prefix, struct place p);
/* NULL, or in the arena why that cannot be done to the node then. */
const char *schedule_why_not(const struct schedule *q, const char *fault, int node, int64_t at_ns);
/* Adds it; what is not HIT_WORKER lasts so long, or SCHEDULE_FOR_EVER. */
void schedule_add(struct schedule *q, const char *fault, int node, int worker, int64_t at_ns,
                  int64_t lasts_ns);
/* Puts all of it behind the timeline, and the note to what people are told. */
void schedule_end(struct schedule *q, const char *note);
