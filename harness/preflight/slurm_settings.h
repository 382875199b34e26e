/* slurm_settings: what Slurm's settings do to a job that something happens to, and what to set instead.
 * Pure: of the text of `scontrol show config`, and of `scontrol --oneliner show partition`. */
#pragma once

#include <stdint.h>

struct slurm_settings {
    const char *config, *partitions; /* both outlive it */
    int64_t grace_s; /* how long workers may take from SIGTERM until they have saved */
};

/* One setting that betrays a job: a sentence with its value, what follows, and what to set. */
typedef void slurm_betrayal_fn(void *arg, const char *sentence);

/* Tells each of them, in the order of the table; what a Slurm does not know is passed over. Returns how
 * many there were, or -1: config is none of Slurm's. */
int slurm_settings_judge(const struct slurm_settings *s, slurm_betrayal_fn *fn, void *arg);
