/* The controller is gone; the job goes on. */
#include "faults/scheduler/slurm.h"

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return slurm_daemon_kill(t, "slurmctld", err);
}

const struct fault fault_slurm_controller_kill = {
    .name = "slurm-controller-kill",
    .summary = "Slurm's controller, slurmctld, is killed; jobs that run go on, and nothing is "
               "started, ended or told",
    .effects = EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_AGENT,
    .needs = FAULT_NEEDS_SCHEDULER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(child_ended),
    .params = (const struct fault_param[]){{0}},
    .undo = "it is started again",
    .blast = "a job that ends meanwhile is seen to have ended when the controller is back",
    .example = "{when: {step: 20}, fault: slurm-controller-kill, on: n0, for: 3s}",
    .recover = slurm_daemon_start,
    .inject = inject,
};
