/* The named bounds of a search and what stands in them by default. */
#include "harness/explore/explore.h"

#include <string.h>

/* In the order of enum explore_fault. */
static const struct explore_bound table[EXPLORE_BOUNDS_N] = {
    {"agent-join", "agents that come later, the last ones first; also those that had gone", 0},
    {"agent-kill", "an agent is killed; its guard ends the workers", 1},
    {"agent-leave", "an agent is told to leave (SIGTERM)", 0},
    {"agent-stop", "an agent is stopped for as long as it takes, its guard is not", 0},
    {"answer-lost", "a request is applied, its answer lost", 0},
    {"answer-slow", "a request is applied, its answer comes any time", 0},
    {"node-cut", "a node is cut off from the store for as long as it takes", 0},
    {"node-stop", "an agent and its guard are stopped for as long as it takes", 0},
    {"request-late", "a request is applied any time, also when its sender is gone, or never", 0},
    {"watch-lost", "a watch breaks", 0},
    {"watch-slow", "a watch delivers any time", 0},
    {"worker-fail", "a worker exits with 1", 1},
};

const struct explore_bound *explore_bounds(void) {
    return table;
}

int explore_bound_find(const char *name) {
    for (int i = 0; i < EXPLORE_BOUNDS_N; i++)
        if (strcmp(table[i].name, name) == 0)
            return i;
    return -1;
}

void explore_config_default(int agents, struct explore_config *ret) {
    *ret = (struct explore_config){.agents = agents,
                                   .min = 1,
                                   .max = agents,
                                   .rounds = 2,
                                   .max_restarts = 1,
                                   .together = 2,
                                   .states_max = UINT64_C(100000000),
                                   .memory_max = UINT64_C(2) << 30};
    for (int i = 0; i < EXPLORE_BOUNDS_N; i++)
        ret->bounds[i] = table[i].usual;
}
