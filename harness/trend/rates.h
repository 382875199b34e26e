/* rates: how often nodes of large clusters fail, as somebody counted it. */
#pragma once

struct rate {
    const char *name;
    double failures, nodes,
        days;        /* so many of so many in so long; days 0: per_1000 is what was told */
    double per_1000; /* failures of 1,000 nodes in a day */
    const char *mix; /* of which kinds: faults/hazards.h */
    const char *source, *text;
};

extern const struct rate rates[];                       /* in alphabetical order, ended by {0} */
const struct rate *rate_find(const char *name);         /* NULL: there is none */
double rate_mtbf_s(const struct rate *r, double nodes); /* of a job on so many nodes */
double rate_per_1000(const struct rate *r);
