/* launcher: how the job is started on a node. One const struct per launcher. */
#pragma once

#include "agent/base/arena.h"
#include "harness/plan/plan.h"

struct launcher {
    const char *name; /* "rankrun" */
    /* The argv of the agent on this node; the job's own argv follows rankprobe's. Placeholders of
     * the scenario ({shared} ...) are already resolved in `run`. bin: the folder of our programs.
     */
    const char *const *(*agent_argv)(struct arena *a, const struct plan *p,
                                     const struct plan_node *n, const char *bin,
                                     const char *const *run);
    const char *const *(*store_argv)(struct arena *a, const struct plan *p,
                                     const struct plan_node *n, const char *bin);
};

extern const struct launcher launcher_rankrun;
