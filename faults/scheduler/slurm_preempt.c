/* A job that matters more wants a node. */
#include "faults/arguments.h"
#include "faults/scheduler/slurm.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>

static const int64_t holds_max_ns = 600000000000;

static int check(const struct fault_args *a, struct err *err) {
    int64_t holds_ns;
    const char *partition = fault_arg(a, "partition", "high");
    if (!*partition || *partition == '-')
        return err_say(err, -EINVAL, "partition: %s is no name of one", partition);
    return fault_duration(a, "holds", "5s", holds_max_ns, &holds_ns, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct slurm_job j;
    char sleep[64];
    int64_t holds_ns;
    int r = fault_duration(a, "holds", "5s", holds_max_ns, &holds_ns, err);
    if (!r)
        r = slurm_job_of(t, &j, err);
    if (r)
        return r;
    snprintf(sleep, sizeof(sleep), "sleep %.3f", (double)holds_ns / 1e9);
    const char *const argv[] = {
        "sbatch",     "--exclusive", "-N", "1",
        "-w",         j.node,        "-p", fault_arg(a, "partition", "high"),
        "--job-name", "preemptor",   "-o", "/dev/null",
        "--wrap",     sleep,         NULL};
    return slurm_command(&j, argv, err);
}

const struct fault fault_slurm_preempt = {
    .name = "slurm-preempt",
    .summary =
        "a job of another partition preempts the one of a worker, and holds its node for a while",
    .effects = EFFECT_ENDS_WORKER | EFFECT_LOUD,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_SCHEDULER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(target_exit),
    .params = (const struct fault_param[]){{"partition", "text", "high",
                                            "of higher priority than the job's"},
                                           {"holds", "duration", "5s", "for how long, at most 10m"},
                                           {0}},
    .undo = "nothing to undo: the other job ends by itself",
    .blast =
        "the job is requeued, if its partition says so, and starts again when the node is free",
    .example = "{when: {step: 20}, fault: slurm-preempt, with: {holds: 5s}, on: rank 1}",
    .check = check,
    .status = slurm_status,
    .inject = inject,
};
