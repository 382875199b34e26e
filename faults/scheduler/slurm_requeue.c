/* An operator puts the job back into the queue. */
#include "faults/scheduler/slurm.h"

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct slurm_job j;
    int r = slurm_job_of(t, &j, err);
    return r ? r : slurm_command(&j, (const char *const[]){"scontrol", "requeue", j.id, NULL}, err);
}

const struct fault fault_slurm_requeue = {
    .name = "slurm-requeue",
    .summary = "the job is requeued (scontrol requeue): all of it ends, and the script starts "
               "again, with SLURM_RESTART_COUNT one higher",
    .effects = EFFECT_ENDS_WORKER | EFFECT_LOUD,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_SCHEDULER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_exit),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo: Slurm starts the job again by itself",
    .blast = "all workers end; the next attempt has what is on disks that outlive a node",
    .example = "{when: {step: 20}, fault: slurm-requeue, on: rank 1}",
    .status = slurm_status,
    .inject = inject,
};
