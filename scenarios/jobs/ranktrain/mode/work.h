/* work: what most modes do alike: memory, this rank's shards computed, and an update. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

/* Memory for a state of which this rank holds so much. Returns 0, or -ENOMEM when it does not fit into
 * the device. */
int work_open_state(struct trainer *t, struct state_range held, struct state_range held_moments,
                    struct err *err);

/* Counts what a computation has allocated. */
int work_count_compute(struct ration *r, const struct compute *compute, void *c, struct err *err);

/* Memory for a state of which this rank holds so much, for one gradient and for the sums of all.
 * Returns 0, or -ENOMEM when it does not fit into the device. work_close in either case. */
int work_open_part(struct trainer *t, struct state_range held, struct state_range held_moments,
                   struct err *err);
int work_open(struct trainer *t, struct err *err); /* all of it */
void work_close(struct trainer *t);

/* Who wants to hear of every layer whose sums are those of all of this rank's shards (shards.h). */
struct work_watch {
    void (*ready)(void *arg, int layer);
    void *arg;
};

/* Leaves the sums over this rank's shards of a step in trainer.sums. watch: NULL when nobody does.
 * Returns 0, -ECANCELED, or an error of shards_sum. */
int work_compute(struct trainer *t, uint64_t step, const struct work_watch *watch, struct err *err);

/* What work_compute does behind the computation: a step takes as long as --compute-ms says. */
int work_floor(struct trainer *t, int64_t begun_ns, struct err *err);

/* Applies sums over all shards as step state.step + 1 to weights, of which there are as many as this
 * rank has to update, and to the moments that it holds. */
void work_update_part(struct trainer *t, const int64_t *sums, float *weights, size_t values);

/* The same to all weights by trainer.sums, of which there are batches shards. Returns the mean loss. */
double work_update(struct trainer *t);
