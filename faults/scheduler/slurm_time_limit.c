/* The job's time is over soon. */
#include "faults/scheduler/slurm.h"

#include <stdio.h>

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct slurm_job j;
    char id[64];
    int r = slurm_job_of(t, &j, err);
    if (r)
        return r;
    snprintf(id, sizeof(id), "JobId=%s", j.id);
    return slurm_command(&j, (const char *const[]){"scontrol", "update", id, "TimeLimit=1", NULL},
                         err);
}

const struct fault fault_slurm_time_limit = {
    .name = "slurm-time-limit",
    .summary = "the job gets a time limit of one minute from its start (scontrol update "
               "TimeLimit=1), and what --signal asks for before it",
    .effects = EFFECT_ENDS_WORKER | EFFECT_LOUD,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_SCHEDULER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_exit),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo: the limit stays",
    .blast = "the job ends with TIMEOUT, unless its script has put it back into the queue by then",
    .example = "{when: {step: 20}, fault: slurm-time-limit, on: rank 1}",
    .status = slurm_status,
    .inject = inject,
};
