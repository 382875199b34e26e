/* option: a word of a command line that is about a schedule: frozen, swarm, agents=N, rate=N,
 * time=N (seconds). */
#pragma once

#include "base/str.h"
#include "harness/sim/sim.h"

#include <string.h>

/* Returns false when it is no such word. */
static inline bool option_take(struct sim_config *c, const char *word) {
    const char *equals = strchr(word, '=');
    int64_t n = 0;
    if (equals && !str_to_i64(equals + 1, 1, 1000, &n))
        return false;
    if (str_eq(word, "frozen"))
        c->frozen = true;
    else if (str_eq(word, "swarm"))
        c->swarm = true;
    else if (strncmp(word, "agents=", 7) == 0)
        c->agents = (int)n;
    else if (strncmp(word, "rate=", 5) == 0)
        c->faults_mean = (int)n;
    else if (strncmp(word, "time=", 5) == 0)
        c->trouble_ns = n * 1000000000;
    else
        return false;
    return true;
}
