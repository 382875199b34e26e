/* allocation: the hosts that a scheduler gave this job, as its variables tell each of them. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct allocation {
    const char *run_id; /* the same on every host, another for another job */
    const char *first;  /* the host where the agents meet */
    int port;
    int nodes; /* 0: not told */
    int node;  /* this host's place, from 0 */
};

/* Of Slurm, in a step that srun has started: SLURM_JOB_ID, SLURM_STEP_ID, SLURM_STEP_NODELIST,
 * SLURM_STEP_NUM_NODES, SLURM_NODEID, SLURM_STEP_TASKS_PER_NODE, and SLURM_HET_SIZE, which there
 * must not be. Returns 1 and *ret; 0: this is no step; -EINVAL: which variable is wrong, and what to
 * do. What *ret points to is in the arena. */
int allocation_of_step(struct arena *a, struct allocation *ret, struct err *err);

/* Of Kubernetes, in a pod of an Indexed Job: JOB_COMPLETION_INDEX, and the pod's full name, JOB-INDEX
 * with the domain of the headless service behind it; NULL: it has none. Returns as above. */
int allocation_of_pod(const char *full_name, struct arena *a, struct allocation *ret,
                      struct err *err);
