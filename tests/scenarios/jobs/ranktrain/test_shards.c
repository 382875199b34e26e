#include "scenarios/jobs/ranktrain/shards.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void deal(int all, int world) {
    int owners[SHARDS_MAX] = {0}, shards[SHARDS_MAX];
    for (int rank = 0; rank < world; rank++) {
        int n = shards_of(rank, world, all, shards);
        assert_true(n >= all / world && n <= (all + world - 1) / world);
        for (int i = 0; i < n; i++) {
            owners[shards[i]]++;
            assert_int_equal(shards[i], shards[0] + i);
        }
    }
    for (int s = 0; s < all; s++)
        assert_int_equal(owners[s], 1);
}

static void test_every_shard_has_one_owner_at_every_world_size(void **state) {
    (void)state;
    static const int counts[] = {1, 5, SHARDS, 24, SHARDS_MAX};
    for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++)
        for (int world = 1; world <= counts[k]; world++)
            deal(counts[k], world);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shard_has_one_owner_at_every_world_size),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
