/* slurm: the Slurm that has started a job, as a process of the job knows it. */
#pragma once

#include "base/buf.h"
#include "faults/fault.h"

#include <stddef.h>

struct slurm_job {
    char conf
        [512]; /* SLURM_CONF=... of the process; "": it has none, and Slurm's usual file holds */
    char path[4096];        /* PATH=... */
    char id[32], node[256]; /* what Slurm calls the job, and the host of the process */
};

/* Reads the environment of the target, a worker. -ESRCH: it has none of Slurm's, or has ended. */
int slurm_job_of(const struct target *t, struct slurm_job *ret, struct err *err);

/* The same of an agent: what Slurm has started, or what has a slurmd below it, whose host is then
 * called as it calls itself; the id may be "". -ESRCH: neither. */
int slurm_host_of(const struct target *t, struct slurm_job *ret, struct err *err);

/* Runs one of Slurm's commands (argv, NULL-ended) and waits for it, 20 s at most. An error has what
 * it said last. */
int slurm_command(const struct slurm_job *j, const char *const *argv, struct err *err);
/* The same, with all that it has said. */
int slurm_ask(const struct slurm_job *j, const char *const *argv, struct buf *ret, struct err *err);
/* scontrol update NodeName=(the host) State=state. */
int slurm_set_state(const struct slurm_job *j, const char *state, struct err *err);

/* The daemon of this name below the target, which is what runs in a node: kills it, and waits for
 * its end. -ESRCH: there is none. */
int slurm_daemon_kill(const struct target *t, const char *name, struct err *err);
/* Has it started again; nothing is done where the target has ended, or starts no daemons. */
int slurm_daemon_start(const struct target *t, const struct fault_args *a, struct err *err);

/* .status of what ends a job: its workers are told to end, and end as they like, or because another
 * has; one that is through has not felt it. */
int slurm_status(const struct fault_args *a);
