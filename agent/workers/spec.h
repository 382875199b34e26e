/* spec: what the workers of one node are in one round, in plain data.
 *
 * The core's facts, translated by the agent, so that nothing in this room knows the rendezvous. All
 * strings are the caller's and are only read during the call that takes the spec. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WORKERS_MAX = 1024 }; /* on one node */

/* The same in every round. */
struct worker_command {
    const char *const *words; /* the program and its arguments as typed, NULL-ended */
    bool module, no_python;
    const char *log_dir; /* NULL: workers inherit stdout and stderr */
};

struct worker_spec {
    /* The round: the same on every node. */
    const char *run_id;
    uint64_t round;    /* RANKRUN_ROUND: strictly rising, the fencing number */
    const char *token; /* RANKRUN_TOKEN: of this round only; NULL: none */
    int world_size, group_world_size;
    int restart_count, max_restarts;
    const char *master_addr;
    int master_port;

    /* This node's part in it. */
    int group_rank, rank_base, local_world_size;
    const char *role;
    int role_rank_base, role_world_size;

    /* True: start nothing unless a deadline was set and has not passed (more than one node). */
    bool deadline_required;
};
