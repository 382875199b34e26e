/* plan: which kernels compute a layer, how many elements each has, and in which order they go. A row
 * of a table for each kind of layer. */
#pragma once

#include "scenarios/jobs/ranktrain/model/model.h"

enum plan_way {
    PLAN_FORWARD,
    PLAN_STATISTICS, /* behind forward, when learning */
    PLAN_BACKWARD,   /* and the sums of the gradients */
    PLAN_CHECK
};
enum plan_of_network { PLAN_LOAD, PLAN_LOSS, PLAN_LOSS_SUM, PLAN_CLASSIFY };

struct plan_kernel {
    const char *name;
    const void *function;
};

struct plan_step {
    const struct plan_kernel *kernel;
    size_t elements; /* of a shard */
    bool in_one_row; /* of all shards */
};

enum { PLAN_STEPS = 4 };

/* Returns how many. */
int plan_layer(const struct model_layer *l, enum plan_way way, struct plan_step ret[PLAN_STEPS]);
struct plan_step plan_network(const struct model *m, enum plan_of_network what);
