/* networks: which layers make which network. A row of the table for each name. */
#pragma once

#include "scenarios/jobs/ranktrain/model/model.h"

enum { NETWORK_STAGES = 5 };

struct architecture {
    const char *name;
    int width;                 /* channels of the first stage, unless said */
    int depth[NETWORK_STAGES]; /* blocks (or convolutions) of each stage; 0: no more */
    bool bottleneck;
    void (*build)(struct model *m, const struct architecture *k);
};

/* By its name; NULL and a sentence that lists them. */
const struct architecture *network_find(const char *name, struct err *err);
