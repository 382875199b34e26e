#include "reports/tempo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stddef.h>
#include <cmocka.h>

static const int64_t second_ns = 1000000000;

static void test_before_the_first_unit_nothing_is_known(void **state) {
    (void)state;
    struct tempo t;
    tempo_begin(&t, 0, 0);
    assert_true(tempo_rate(&t) == 0);
    assert_int_equal(tempo_left_ns(&t, 10 * second_ns, 100), -1);
}

static void test_even_work_takes_as_long_again(void **state) {
    (void)state;
    struct tempo t;
    tempo_begin(&t, 0, 0);
    for (int64_t i = 1; i <= 50; i++)
        tempo_note(&t, i * second_ns, i);
    assert_true(tempo_rate(&t) == 1.0);
    assert_int_equal(tempo_left_ns(&t, 50 * second_ns, 100), 50 * second_ns);
}

/* Answers from a cache come at once; what follows does not. */
static void test_the_newer_half_counts_and_not_the_beginning(void **state) {
    (void)state;
    struct tempo t;
    tempo_begin(&t, 0, 0);
    tempo_note(&t, second_ns, 1000);
    for (int64_t i = 2; i <= 200; i++)
        tempo_note(&t, i * second_ns, 1000 + i);
    assert_true(tempo_rate(&t) > 0.99 && tempo_rate(&t) < 1.01);
}

static void test_it_is_right_after_more_samples_than_it_keeps(void **state) {
    (void)state;
    struct tempo t;
    tempo_begin(&t, 0, 0);
    for (int64_t i = 1; i <= 1000000; i++)
        tempo_note(&t, i * second_ns / 1000, i);
    assert_true(tempo_rate(&t) > 999 && tempo_rate(&t) < 1001);
    assert_true(t.n <= TEMPO_SAMPLES);
    int64_t left = tempo_left_ns(&t, 1000 * second_ns, 1500000);
    assert_true(left > 499 * second_ns && left < 501 * second_ns);
}

static void test_the_unit_at_work_counts_down_and_no_further_than_its_end(void **state) {
    (void)state;
    struct tempo t;
    tempo_begin(&t, 0, 0);
    tempo_note(&t, 30 * second_ns, 1);
    assert_int_equal(tempo_left_ns(&t, 30 * second_ns, 3), 60 * second_ns);
    assert_int_equal(tempo_left_ns(&t, 40 * second_ns, 3), 50 * second_ns);
    assert_int_equal(tempo_left_ns(&t, 90 * second_ns, 3), 30 * second_ns);
}

static void test_who_goes_back_begins_anew(void **state) {
    (void)state;
    struct tempo t;
    tempo_begin(&t, 0, 0);
    tempo_note(&t, 100 * second_ns, 100);
    tempo_note(&t, 110 * second_ns, 40);
    assert_int_equal(tempo_left_ns(&t, 110 * second_ns, 100), -1);
    tempo_note(&t, 115 * second_ns, 50);
    assert_int_equal(tempo_left_ns(&t, 115 * second_ns, 100), 25 * second_ns);
}

static void test_more_than_was_announced_leaves_nothing_to_say(void **state) {
    (void)state;
    struct tempo t;
    tempo_begin(&t, 0, 0);
    tempo_note(&t, second_ns, 12);
    assert_int_equal(tempo_left_ns(&t, second_ns, 12), 0);
    assert_int_equal(tempo_left_ns(&t, second_ns, 10), -1);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_the_first_unit_nothing_is_known),
        cmocka_unit_test(test_even_work_takes_as_long_again),
        cmocka_unit_test(test_the_newer_half_counts_and_not_the_beginning),
        cmocka_unit_test(test_it_is_right_after_more_samples_than_it_keeps),
        cmocka_unit_test(test_the_unit_at_work_counts_down_and_no_further_than_its_end),
        cmocka_unit_test(test_who_goes_back_begins_anew),
        cmocka_unit_test(test_more_than_was_announced_leaves_nothing_to_say),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
