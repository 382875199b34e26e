#include "scenarios/jobs/ranktrain/data/sampler.h"

#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_an_epoch_is_every_sample_once(void **state) {
    (void)state;
    static unsigned seen[60000];
    struct sampler s;
    sampler_init(&s, 1, 60000, 96, 1, false);
    assert_int_equal(sampler_steps_per_epoch(&s), 625);
    for (uint64_t step = 626; step <= 1250; step++) {
        const uint32_t *samples = sampler_step(&s, step);
        for (int i = 0; i < 96; i++)
            seen[samples[i]]++;
    }
    for (int i = 0; i < 60000; i++)
        assert_int_equal(seen[i], 1);
    sampler_fini(&s);
}

static void test_a_step_is_the_same_wherever_one_begins(void **state) {
    (void)state;
    struct sampler through, resumed;
    sampler_init(&through, 3, 1000, 96, 1, false);
    sampler_init(&resumed, 3, 1000, 96, 1, false);
    for (uint64_t step = 1; step <= 137; step++)
        sampler_step(&through, step);
    assert_memory_equal(sampler_step(&through, 138), sampler_step(&resumed, 138),
                        96 * sizeof(uint32_t));
    sampler_fini(&through);
    sampler_fini(&resumed);
}

static void test_epochs_and_seeds_have_orders_of_their_own(void **state) {
    (void)state;
    struct sampler a, b;
    uint32_t first[96];
    sampler_init(&a, 3, 960, 96, 1, false);
    sampler_init(&b, 4, 960, 96, 1, false);
    memcpy(first, sampler_step(&a, 1), sizeof(first));
    assert_memory_not_equal(first, sampler_step(&a, 11), sizeof(first));
    assert_memory_not_equal(first, sampler_step(&b, 1), sizeof(first));
    sampler_fini(&a);
    sampler_fini(&b);
}

/* 70 samples in steps of 32: each of three epochs has all of them, whoever begins where. */
static void test_uneven_epochs_have_every_sample_once_too(void **state) {
    (void)state;
    unsigned seen[3][70] = {{0}};
    struct sampler s, resumed;
    sampler_init(&s, 5, 70, 32, 1, false);
    assert_int_equal(sampler_last_step(&s, 3), 7);
    assert_int_equal(sampler_epoch_size(&s), 70);
    for (uint64_t step = 1; step <= 7; step++) {
        const uint32_t *samples = sampler_step(&s, step);
        sampler_init(&resumed, 5, 70, 32, 1, false);
        assert_memory_equal(samples, sampler_step(&resumed, step), 32 * sizeof(*samples));
        sampler_fini(&resumed);
        for (uint32_t i = 0; i < 32; i++)
            if (sampler_epoch_of(&s, step, i) < 3)
                seen[sampler_epoch_of(&s, step, i)][samples[i]]++;
    }
    for (int e = 0; e < 3; e++)
        for (int i = 0; i < 70; i++)
            assert_int_equal(seen[e][i], 1);
    sampler_fini(&s);
}

static void test_what_is_left_over_is_skipped_where_that_is_asked_for(void **state) {
    (void)state;
    struct sampler s;
    sampler_init(&s, 1, 100, 48, 1, true);
    assert_int_equal(sampler_last_step(&s, 3), 6);
    assert_int_equal(sampler_steps_per_epoch(&s), 2);
    sampler_step(&s, 2);
    assert_int_equal(s.epoch, 0);
    sampler_step(&s, 3);
    assert_int_equal(s.epoch, 1);
    sampler_fini(&s);
}

/* 24 samples in three parts, in steps of 12: each part's block takes the next 4 of the 8 that it has,
 * and of two steps nothing is left. */
static void test_each_block_of_a_step_goes_through_a_part_of_its_own(void **state) {
    (void)state;
    unsigned seen[8] = {0};
    struct sampler s;
    sampler_init(&s, 5, 8, 12, 3, false);
    assert_int_equal(sampler_steps_per_epoch(&s), 2);
    assert_int_equal(sampler_last_step(&s, 3), 6);
    for (uint64_t step = 3; step <= 4; step++)
        for (int i = 8; i < 12; i++) {
            seen[sampler_step(&s, step)[i]]++;
            assert_int_equal(sampler_epoch_of(&s, step, (uint32_t)i), 1);
        }
    for (int i = 0; i < 8; i++)
        assert_int_equal(seen[i], 1);
    sampler_fini(&s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_epoch_is_every_sample_once),
        cmocka_unit_test(test_a_step_is_the_same_wherever_one_begins),
        cmocka_unit_test(test_epochs_and_seeds_have_orders_of_their_own),
        cmocka_unit_test(test_uneven_epochs_have_every_sample_once_too),
        cmocka_unit_test(test_each_block_of_a_step_goes_through_a_part_of_its_own),
        cmocka_unit_test(test_what_is_left_over_is_skipped_where_that_is_asked_for),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
