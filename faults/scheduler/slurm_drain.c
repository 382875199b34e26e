/* An operator takes a node out of use: what runs there goes on, and nothing is started there. */
#include "faults/scheduler/slurm.h"

#include "base/str.h"

#include <errno.h>
#include <string.h>

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct slurm_job j;
    int r = slurm_host_of(t, &j, err);
    return r ? r : slurm_set_state(&j, "DRAIN", err);
}

/* Of a node that is of use already Slurm takes no RESUME. */
static int resume(const struct slurm_job *j, struct err *err) {
    BUF_FINI struct buf said = {0};
    int r = slurm_set_state(j, "RESUME", err);
    if (r != -EIO)
        return r;
    const char *const argv[] = {"scontrol", "--oneliner", "show", "node", j->node, NULL};
    bool told = slurm_ask(j, argv, &said, NULL) == 0 && strstr(buf_str(&said), " State=");
    return told && !strstr(buf_str(&said), "DRAIN") ? 0 : r;
}

/* Nothing is done where the target has ended: the Slurm that knew of it has, too. */
static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    struct slurm_job j;
    int r = slurm_host_of(t, &j, err);
    return r == -ESRCH ? 0 : r ? r : resume(&j, err);
}

const struct fault fault_slurm_drain = {
    .name = "slurm-drain",
    .summary = "a node gets no more jobs (scontrol update State=DRAIN); what runs there goes on",
    .effects = EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_AGENT,
    .needs = FAULT_NEEDS_SCHEDULER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(node_drained),
    .params = (const struct fault_param[]){{0}},
    .undo = "the node is of use again (State=RESUME)",
    .blast = "a job that is requeued meanwhile starts elsewhere, or waits where it needs the node",
    .example = "{when: {step: 20}, fault: slurm-drain, on: n1, for: 3s}",
    .recover = recover,
    .inject = inject,
};
