/* slurm_conf: what slurm.conf says of the end of a job. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct slurm_conf {
    int kill_wait_s; /* from SIGTERM to SIGKILL, when a job's time is over or it is cancelled */
    int grace_s;     /* of the partition, for jobs that are preempted; 0: none */
    bool requeues;   /* jobs of the partition are requeued when they are preempted */
};

/* Reads the text of a slurm.conf; partition: the job's, NULL: not known. What is not said has Slurm's
 * default, what cannot be read is as not said. Keys are known in any case, the last of several counts,
 * files that it includes are not read. */
void slurm_conf_parse(const char *text, size_t len, const char *partition, struct slurm_conf *ret);
