/* cases_judge: what all checks say of a planted history, under the promises that a case names. */
#pragma once

#include "tests/harness/judge/checks/cases.h"
#include "tests/harness/judge/checks/planted.h"

/* The scenario that NAME was recorded from, under those promises. */
static inline struct scenario cases_scenario(const char *name, enum dialect d) {
    struct scenario s = planted_scenario(name);
    s.torchrun_semantics = d == DIALECT_TORCHRUN || d == DIALECT_LEGACY;
    s.job.rdzv_backend = d == DIALECT_LEGACY ? "etcd" : NULL;
    s.job.launcher = d == DIALECT_TEMPLATE || d == DIALECT_SLURM ? "template" : "rankrun";
    if (d == DIALECT_SLURM) { /* a script, which says nothing of where it saves and how often */
        s.cluster.scheduler = SCHEDULER_SLURM;
        s.job.checkpoint_dir = NULL;
        s.job.run_n = 1;
    }
    return s;
}

static inline void cases_judge(struct verdict *v, const struct history *h, const char *name,
                               enum dialect d) {
    const struct scenario s = cases_scenario(name, d);
    struct trial t = {.scenario = &s, .history = h};
    verdict_judge(v, &t);
}
