#include "harness/verbs/sim/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const int64_t second_ns = 1000000000;

static void test_it_says_seeds_their_pace_marks_and_violations(void **state) {
    (void)state;
    struct progress p = {.seeds = 200000};
    struct seeds_tally t = {.seeds = 50000, .violated = 3, .marks = {7, 1, 0, 9}};
    struct buf text = {0}, expected = {0};
    progress_text(&p, &t, 100 * second_ns, &text);
    buf_printf(&expected, "25 %%  50000 seeds  1800000 an hour  marks 3 of %d  violations 3",
               SIM_MARKS_N);
    assert_string_equal(buf_str(&text), buf_str(&expected));
    buf_fini(&text);
    buf_fini(&expected);
}

static void test_before_any_time_has_passed_there_is_no_pace(void **state) {
    (void)state;
    struct progress p = {.seeds = 10};
    struct buf text = {0};
    progress_text(&p, &(struct seeds_tally){0}, 0, &text);
    assert_non_null(strstr(buf_str(&text), "0 %  0 seeds  0 an hour"));
    buf_fini(&text);
}

static void test_lines_come_every_ten_seconds_at_first_and_then_every_minute(void **state) {
    (void)state;
    int64_t after_ns = 0;
    static const int64_t due_s[] = {10, 20, 30, 40, 50, 60, 120, 180};
    for (size_t i = 0; i < sizeof(due_s) / sizeof(*due_s); i++) {
        after_ns = progress_due_ns(after_ns);
        assert_int_equal(after_ns, due_s[i] * second_ns);
    }
    assert_int_equal(progress_due_ns(3599 * second_ns), 3600 * second_ns);
}

/* One that is told late of its seeds does not say the lines that it has missed. */
static void test_a_line_that_came_late_is_followed_by_the_next_one_at_its_time(void **state) {
    (void)state;
    assert_int_equal(progress_due_ns(37 * second_ns), 40 * second_ns);
    assert_int_equal(progress_due_ns(150 * second_ns), 180 * second_ns);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_says_seeds_their_pace_marks_and_violations),
        cmocka_unit_test(test_before_any_time_has_passed_there_is_no_pace),
        cmocka_unit_test(test_lines_come_every_ten_seconds_at_first_and_then_every_minute),
        cmocka_unit_test(test_a_line_that_came_late_is_followed_by_the_next_one_at_its_time),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
