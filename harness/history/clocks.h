/* clocks: what a history tells of the clocks of hosts that have one of their own, and when at the
 * earliest and at the latest what was stamped there can have happened.
 *
 * A stamp of another host is known within a bound, and no two of one host are independent: between
 * them that clock has gone on as ours has, but for CLOCKS_DRIFT_PPM. So each is narrowed by all others
 * of its host, those that came later too; and whom a fault has struck, or who was held on the node that
 * it has struck, has not ended before it was fired. All of a host may have happened at its earliest, or
 * all at its latest, or at any share of the way between: nothing that was recorded contradicts it. */
#pragma once

#include "harness/history/history.h"

enum { CLOCKS_DRIFT_PPM = 100 };

/* Of one node. */
struct node_clock {
    const char *node, *host;    /* host: the node's name where no `clock` tells it */
    size_t stamped;             /* records that bear its stamp */
    int64_t least_ns, most_ns;  /* half of the time within which they may have happened */
    int64_t ahead_ns;           /* of ours, when it was asked last; 0: it never was */
    int64_t bound_ns, round_ns; /* likewise */
    int64_t samples, steps;
    int64_t step_seq; /* of the last clock-step; 0: none */
};

struct clocks {
    struct arena arena;
    struct node_clock *v; /* in the order in which they were first heard of */
    size_t n;
    /* By the place of a record in the history. */
    int32_t *of; /* place in v; -1: it bears the harness's stamp */
    int64_t *earliest_ns, *latest_ns;
};

/* None where every stamp is the harness's own and no `clock` was recorded. */
void clocks_load(struct clocks *c, const struct history *h);
void clocks_fini(struct clocks *c);
const struct node_clock *clocks_find(const struct clocks *c, const char *node); /* NULL: none */
/* The most that two moments, each of any host, may be nearer or further than they seem; 0: all are ours. */
int64_t clocks_most_ns(const struct clocks *c);

/* " ± 0.4 ms", or in ASCII " +- 0.4 ms", to stand behind a time; "" where the bound is 0. */
const char *clocks_text(char *out, size_t size, int64_t bound_ns, bool unicode);

/* When it was, at this share of the way from its earliest (0) to its latest (1) moment. */
int64_t clocks_moment(const struct clocks *c, const struct history *h, size_t at, double share);
