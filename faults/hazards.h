/* hazards: how often which fault happens in large clusters, as somebody counted it. */
#pragma once

struct hazard {
    const char *fault;
    double share; /* of all that were counted; only the proportions mean something */
};

struct hazards {
    const char *name, *text;
    struct hazard v[8]; /* ended by {0}; none: every fault as often as every other */
};

extern const struct hazards hazards[]; /* in alphabetical order, ended by {0} */
