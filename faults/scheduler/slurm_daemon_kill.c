/* The daemon of a node is gone; what it has started goes on. */
#include "faults/scheduler/slurm.h"

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return slurm_daemon_kill(t, "slurmd", err);
}

const struct fault fault_slurm_daemon_kill = {
    .name = "slurm-daemon-kill",
    .summary =
        "the slurmd of a node is killed; steps that run there go on, and Slurm cannot reach them",
    .effects = EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_AGENT,
    .needs = FAULT_NEEDS_SCHEDULER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(child_ended),
    .params = (const struct fault_param[]){{0}},
    .undo = "it is started again",
    .blast = "a job that is cancelled or requeued meanwhile cannot be ended there; after "
             "SlurmdTimeout the node counts as down",
    .example = "{when: {step: 20}, fault: slurm-daemon-kill, on: n1, for: 3s}",
    .recover = slurm_daemon_start,
    .inject = inject,
};
