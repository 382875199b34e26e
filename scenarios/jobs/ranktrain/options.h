/* options: the command line and what the launcher puts into the environment. */
#pragma once

#include "base/err.h"
#include "base/manual.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPTIONS_RUN_ID = 128 };

/* Options that come before those of the command line, parted by spaces: what a suite of runs has in
 * common. */
#define OPTIONS_VARIABLE "RANKTRAIN_OPTIONS"

struct ranktrain_options {
    int64_t steps;            /* 0: as many as the epochs have */
    int64_t samples;          /* of the training data, the first; 0: all */
    int64_t checkpoint_every; /* steps; below 0: so many epochs */
    bool checkpoint_async, checkpoint_sharded;
    bool fresh;          /* begin anew where there are checkpoints and none can be used */
    int64_t grace_ns;    /* behind SIGTERM, for a checkpoint that all make together */
    const char *recover; /* "restart" or "in-process" */
    int64_t eval_batch_size, interval_ns; /* of evaluate; interval 0: as inotify tells */
    int64_t scale_lr;                     /* the world that lr is for; 0: lr is for every world */
    int64_t epochs, checkpoint_keep, log_every, seed;
    const char *checkpoint_dir; /* NULL: no checkpoints */
    const char *dataset;
    const char *data_dir; /* NULL: where the dataset usually is */
    int64_t loaders;
    bool drop_last;
    int64_t image_size;          /* of images that have no common size; 0: 32 */
    const char *device;          /* "auto", "cpu" or "cuda" */
    const char *dist_backend;    /* "tcp" or "nccl" */
    const char *renamed_backend; /* what was said for it; NULL: its name */
    const char *dist_url;        /* "env://" */
    const char *network, *optimizer;
    const char *mode;           /* of mode/mode.h */
    int64_t devices;            /* of dp */
    int64_t backup_workers;     /* of ps: so many are not waited for */
    int64_t num_aggregate;      /* of ps: so many are waited for; 0: as backup_workers says */
    int64_t device_memory;      /* bytes that a device has; 0: no limit */
    int64_t batch_size, shards; /* samples of a step, and into how many parts they are cut */
    int64_t width;              /* channels of the network's first stage; 0: its own */
    double lr, momentum;        /* lr below 0: the optimizer's own */
    int64_t compute_ns;         /* each step's computation takes at least this long */
    int64_t collective_ns;      /* a collective that takes longer has failed */
    int64_t device_ns;          /* a device that takes longer for one computation has failed */
    bool ps_async;
    bool overlap;  /* sums go round while layers are computed */
    int64_t spawn; /* ranks to start; 0: this process is one */
    bool help, version, man;
    const char *complete; /* NULL: no shell's lines are asked for */

    /* Of the environment; alone, without RANK and WORLD_SIZE: rank 0 of 1. */
    int rank, world;
    int local_rank;          /* LOCAL_RANK; 0: not told */
    const char *master_addr; /* NULL only when alone */
    int master_port;
    int64_t round; /* RANKRUN_ROUND; 0: not told */
    int64_t restart_count;
    char run_id[OPTIONS_RUN_ID]; /* TORCHELASTIC_RUN_ID, cut off; "": none */
};

/* Strings stay owned by argv and the environment. Returns 0, or -EINVAL with a sentence that names
 * the option or variable. */
int options_parse(int argc, char **argv, struct ranktrain_options *ret, struct err *err);

enum { OPTIONS_NAME = 40, OPTIONS_MOST = 80 };

/* The table, as many as there are and max at most; the names are kept in ret_names. */
size_t options_list(struct manual_option *ret, char (*ret_names)[OPTIONS_NAME], size_t max);

/* Writes the manual of the options, ended by a NUL, cut off at size. */
void options_manual(char *ret, size_t size);
