/* Slurm takes a node for dead that is not. */
#include "faults/scheduler/slurm.h"

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct slurm_job j;
    int r = slurm_job_of(t, &j, err);
    r = r ? r : slurm_set_state(&j, "DOWN", err);
    if (r == 0)
        slurm_set_state(&j, "RESUME", NULL); /* refused where it has returned by itself */
    return r;
}

const struct fault fault_slurm_node_down = {
    .name = "slurm-node-down",
    .summary = "Slurm takes the node of a worker for down, and at once for well again (scontrol "
               "update State=DOWN, RESUME)",
    .effects = EFFECT_ENDS_WORKER | EFFECT_LOUD,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_SCHEDULER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_exit),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo: the node is of use again",
    .blast = "Slurm ends what runs on the node; without --no-kill it ends the job, and requeues it",
    .example = "{when: {step: 20}, fault: slurm-node-down, on: rank 1}",
    .status = slurm_status,
    .inject = inject,
};
