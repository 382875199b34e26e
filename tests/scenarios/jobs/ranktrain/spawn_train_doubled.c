/* ranktrain with a planted bug: rank 0 computes a shard that another rank computes too. */
#define shards_of shards_of_rightly
#include "scenarios/jobs/ranktrain/shards.c"
#undef shards_of

int shards_of(int rank, int world, int ret_shards[SHARDS]);

int shards_of(int rank, int world, int ret_shards[SHARDS]) {
    int n = shards_of_rightly(rank, world, ret_shards);
    if (rank == 0 && n < SHARDS)
        ret_shards[n++] = SHARDS - 1;
    return n;
}

#include "scenarios/jobs/ranktrain/main.c"
