/* ranktrain with a planted bug: what the worker of the last shard has summed is dropped. */
#define shards_sum shards_sum_rightly
#include "scenarios/jobs/ranktrain/shards.c"
#undef shards_sum

int shards_sum(const struct shards_work *w, const float *values, const uint32_t *samples,
               const int *shards, int n, int64_t *ret_sums, uint64_t *ret_read, struct err *err);

int shards_sum(const struct shards_work *w, const float *values, const uint32_t *samples,
               const int *shards, int n, int64_t *ret_sums, uint64_t *ret_read, struct err *err) {
    static int calls;
    int r = shards_sum_rightly(w, values, samples, shards, n, ret_sums, ret_read, err);
    if (++calls == 3 && shards[n - 1] == SHARDS - 1)
        memset(ret_sums, 0, (w->model->values + 1) * sizeof(*ret_sums));
    return r;
}

#include "scenarios/jobs/ranktrain/main.c"
