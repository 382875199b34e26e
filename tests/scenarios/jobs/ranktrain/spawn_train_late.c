/* ranktrain whose last worker takes as long for its second step as the server takes to come to its
 * sixth: it waits at the FIFO that $LATE names until the server opens it. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define shards_sum shards_sum_rightly
#include "scenarios/jobs/ranktrain/shards.c"
#undef shards_sum

int shards_sum(const struct shards_work *w, const float *values, const uint32_t *samples,
               const int *shards, int n, int64_t *ret_sums, uint64_t *ret_read, struct err *err);

int shards_sum(const struct shards_work *w, const float *values, const uint32_t *samples,
               const int *shards, int n, int64_t *ret_sums, uint64_t *ret_read, struct err *err) {
    static int calls;
    if (++calls == 2 && shards[n - 1] == SHARDS - 1)
        close(open(getenv("LATE"), O_RDONLY | O_CLOEXEC));
    return shards_sum_rightly(w, values, samples, shards, n, ret_sums, ret_read, err);
}

#define optimizer_step optimizer_step_rightly
#include "scenarios/jobs/ranktrain/optimizer.c"
#undef optimizer_step

void optimizer_step(const struct optimizer *o, const struct optimizer_update *u, float *values,
                    float *const moments[OPTIMIZER_MOMENTS]);

void optimizer_step(const struct optimizer *o, const struct optimizer_update *u, float *values,
                    float *const moments[OPTIMIZER_MOMENTS]) {
    if (u->step == 6)
        close(open(getenv("LATE"), O_WRONLY | O_CLOEXEC));
    optimizer_step_rightly(o, u, values, moments);
}

#include "scenarios/jobs/ranktrain/main.c"
