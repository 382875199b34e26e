/* A job that matters more wants a node. */
#include "faults/fault.h"
#include "faults/scheduler/slurm.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>

static int check(const struct fault_args *a, struct err *err) {
    int64_t seconds;
    const char *partition = fault_arg(a, "partition", "high"), *holds = fault_arg(a, "holds", "5");
    if (!*partition || *partition == '-')
        return err_say(err, -EINVAL, "partition: %s is no name of one", partition);
    if (!str_to_i64(holds, 1, 600, &seconds))
        return err_say(err, -EINVAL, "holds: %s is no number of seconds from 1 to 600", holds);
    return 0;
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct slurm_job j;
    char sleep[64];
    snprintf(sleep, sizeof(sleep), "sleep %s", fault_arg(a, "holds", "5"));
    int r = slurm_job_of(t, &j, err);
    if (r)
        return r;
    const char *const argv[] = {
        "sbatch",     "--exclusive", "-N", "1",
        "-w",         j.node,        "-p", fault_arg(a, "partition", "high"),
        "--job-name", "preemptor",   "-o", "/dev/null",
        "--wrap",     sleep,         NULL};
    return slurm_command(&j, argv, err);
}

/* Workers are told to end, and end as they like, or because another has; one that is through has
 * not felt it. */
static int status(const struct fault_args *a) {
    return FAULT_STATUS_FAILED;
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
    .params =
        (const struct fault_param[]){
            {"partition", "string", "high", "of higher priority than the job's"},
            {"holds", "string", "5", "for how many seconds, 1 to 600"},
            {0}},
    .undo = "nothing to undo: the other job ends by itself",
    .blast =
        "the job is requeued, if its partition says so, and starts again when the node is free",
    .example = "{when: {step: 20}, fault: slurm-preempt, with: {holds: 5}, on: rank 1}",
    .check = check,
    .status = status,
    .inject = inject,
};
