/* status_answer: what `rankrun status` has told, for people or as JSON, taken apart. What one of the
 * forms does not tell, and null, is unknown: -1, or NULL. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct status_member {
    const char *node, *addr, *role, *state;
    int64_t slots, group_rank, first_rank, last_rank; /* last_rank: as text says it */
    int64_t beat_ms;
    bool spare;
};

struct status_answer {
    const char *run_id, *phase, *outcome, *coordinator, *master_addr;
    int64_t round, nodes, nodes_min, nodes_max, waiting, world;
    int64_t restarts, restarts_max, restarts_left, master_port, beat_ms, not_read;
    bool failure;                              /* it tells of a first failure; the rest of it: */
    const char *failure_node, *failure_status; /* status: "exit code 3", "SIGKILL" */
    int64_t failure_rank;
    struct status_member *members;
    size_t members_n;
};

/* False: it is neither form. */
bool status_answer_read(struct arena *a, const char *text, struct status_answer *ret);
