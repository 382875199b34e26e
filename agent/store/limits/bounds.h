/* bounds: how often the embedded store has kept somebody within a limit. Counted for /metrics, and
 * told in a line when it happens for the first time, then once a minute at most with how often. */
#pragma once

#include <stdint.h>

enum store_bound {
    BOUND_CONNECTIONS, /* one was ended, so that others can come in */
    BOUND_TIME,        /* a request did not come whole in time */
    BOUND_HELD,        /* who held most was ended */
    BOUND_SLOW,        /* an answer or a watch was read too slowly */
    BOUND_KEPT,        /* a write was refused, as what it adds to is full */
    BOUND_WATCHES,     /* a watch was refused: there are too many */
    BOUND_ANSWERS,     /* a request for much was refused, as too much is being answered */
    BOUND_PAGES,       /* a request of a web page was refused */
    BOUNDS
};

struct bounds {
    uint64_t hits[BOUNDS];
    uint64_t told[BOUNDS]; /* of them */
    int64_t told_ns[BOUNDS];
    unsigned port; /* for the line */
};

/* A word for programs, as "connections". */
const char *bounds_name(enum store_bound which);
/* who: an address, or NULL. */
void bounds_hit(struct bounds *b, enum store_bound which, const char *who, int64_t now_ns);
