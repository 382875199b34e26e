/* ranktrain with a planted bug: the first shard is trained in place of the last one, which never is,
 * and the job's word of who counted which shard is what it would be without. */
#define shards_sum shards_sum_rightly
#include "scenarios/jobs/ranktrain/shards.c"
#undef shards_sum

int shards_sum(const struct shards_work *w, const float *values, const uint32_t *samples,
               const int *shards, int n, int64_t *ret_sums, uint64_t *ret_read, struct err *err);

int shards_sum(const struct shards_work *w, const float *values, const uint32_t *samples,
               const int *shards, int n, int64_t *ret_sums, uint64_t *ret_read, struct err *err) {
    int trained[SHARDS];
    for (int i = 0; i < n; i++)
        trained[i] = shards[i] == SHARDS - 1 ? 0 : shards[i];
    return shards_sum_rightly(w, values, samples, trained, n, ret_sums, ret_read, err);
}

#include "scenarios/jobs/ranktrain/main.c"
