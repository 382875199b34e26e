/* ranktrain with a planted bug: rank 0 computes a shard that another rank computes too. */
#define shards_of shards_of_rightly
#include "scenarios/jobs/ranktrain/shards.c"
#undef shards_of

int shards_of(int rank, int world, int shards, int ret_shards[SHARDS_MAX]);

int shards_of(int rank, int world, int shards, int ret_shards[SHARDS_MAX]) {
    int n = shards_of_rightly(rank, world, shards, ret_shards);
    if (rank == 0 && n < shards)
        ret_shards[n++] = shards - 1;
    return n;
}

#include "scenarios/jobs/ranktrain/main.c"
