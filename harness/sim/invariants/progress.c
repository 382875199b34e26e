#include "harness/sim/invariants/judging.h"

static void on_end(struct sim *c, bool over) {
    if (over)
        return;
    if (c->now_ns > sim_limit_ns(c))
        invariant_broken(c, &invariant_progress, "no end %d s after the last fault and its round",
                         SIM_CALM_S);
    else
        invariant_broken(c, &invariant_progress,
                         "nothing is left to happen, and the job has not ended");
}

const struct invariant invariant_progress = {
    .name = "progress",
    .number = "I5",
    .summary = "when the faults are over, the job ends",
    .text = "Once everything has healed, and the work that was begun in the trouble is done, the "
            "job ends within a minute of virtual time as its workers decide, and every agent and "
            "every worker with it.",
    .check = "liveness",
    .on_end = on_end,
};
