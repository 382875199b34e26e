/* Somebody cancels the job that a worker belongs to. */
#include "faults/scheduler/slurm.h"

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct slurm_job j;
    int r = slurm_job_of(t, &j, err);
    return r ? r : slurm_command(&j, (const char *const[]){"scancel", j.id, NULL}, err);
}

const struct fault fault_slurm_cancel = {
    .name = "slurm-cancel",
    .summary = "the job is cancelled (scancel): SIGTERM to all of it, SIGKILL after KillWait",
    .effects = EFFECT_ENDS_WORKER | EFFECT_LOUD,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_SCHEDULER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_exit),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo: the job is not started again",
    .blast = "the whole job is over, and has failed",
    .example = "{when: {step: 20}, fault: slurm-cancel, on: rank 1}",
    .status = slurm_status,
    .inject = inject,
};
