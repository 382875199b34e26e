/* spec: what the workers of one node are in one round, in plain data.
 *
 * The core's facts, translated by the agent, so that nothing in this room knows the rendezvous. All
 * strings are the caller's and are only read during the call that takes the spec. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WORKERS_MAX = 1024 }; /* on one node */

/* Streams, as --redirects and --tee number them. */
enum { STREAM_OUT = 1, STREAM_ERR = 2 };

/* Where the workers' output goes; arrays by local rank. */
struct worker_output {
    const char *log_dir;    /* NULL: none was given */
    const uint8_t *to_file; /* STREAM_*: into files; NULL: nothing does */
    const uint8_t *tee;     /* of these, what is shown on the console as well */
    const bool *hidden;     /* what does not go into files is not shown; NULL: none is */
    /* Before a line that is shown; NULL: [${role_name}${local_rank}]: */
    const char *prefix;
    /* Lines of what is shown that hold one of these are collected in filtered_<stream>.log;
     * NULL: none. */
    const char *const *out_needles, *const *err_needles;
};

/* The same in every round. */
struct worker_command {
    const char *const *words; /* the program and its arguments as typed, NULL-ended */
    bool module, no_python;
    bool run_path; /* by Python's runpy.run_path */
    bool sandbox;  /* the caller is in it (confinement.h), and so will they be */
    struct worker_output output;
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

    bool virtual_local_rank; /* every worker sees one GPU, and is local rank 0 of it */

    /* True: start nothing unless a deadline was set and has not passed (more than one node). */
    bool deadline_required;

    const char *timer_file; /* TORCHELASTIC_TIMER_FILE; NULL: what the agent's own says */

    /* A descriptor that the guard and every worker inherit, and nobody uses; 0: none. */
    int lifeline;
};
