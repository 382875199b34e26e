/* spans: which of very many things lasted at a moment, found without asking each.
 *
 * The things are numbered from 0, in whatever order they are wanted. To find the next takes a time
 * that grows with the logarithm of their number, as long as they begin about in that order. */
#pragma once

#include "harness/history/history.h"
#include "harness/history/incidents.h"

struct span {
    int64_t begin_ns, end_ns; /* both belong to it */
};

struct spans {
    int64_t *begin_ns;
    int64_t *earliest_ns; /* the begin of each and of all behind it */
    int64_t *latest_ns;   /* a tree: the later end of the two below; at the bottom each one's own */
    size_t n, leaves;
};

/* All memory is the arena's. */
void spans_init(struct spans *s, struct arena *a, size_t n,
                struct span (*of)(const void *things, size_t at), const void *things);
/* The first at or behind `at` that lasted at any moment from from_ns to to_ns; n: none. */
size_t spans_next(const struct spans *s, size_t at, int64_t from_ns, int64_t to_ns);

/* Incidents in force, from t0 to the recovery; what is not recovered counts for the moment t0. */
void spans_of_incidents(struct spans *s, struct arena *a, const struct incidents *is);

/* Some records of a history, in its order, each a moment of `when`. */
struct moments {
    const struct record **v;
    struct spans when;
};

void moments_init(struct moments *m, struct arena *a, const struct history *h,
                  bool (*wanted)(const struct record *));
/* The first at or behind *at in that time, and *at goes behind it; NULL: none. */
const struct record *moments_next(const struct moments *m, size_t *at, int64_t from_ns,
                                  int64_t to_ns);
