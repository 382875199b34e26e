#include "harness/verbs/sim/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void test_it_says_marks_and_violations(void **state) {
    (void)state;
    struct seeds_tally t = {.seeds = 50000, .violated = 3, .marks = {7, 1, 0, 9}};
    struct buf text = {0}, expected = {0};
    progress_note(&t, &text);
    buf_printf(&expected, "marks 3 of %d  violations 3", SIM_MARKS_N);
    assert_string_equal(buf_str(&text), buf_str(&expected));
    buf_fini(&text);
    buf_fini(&expected);
}

static void test_it_counts_seeds_by_the_hour(void **state) {
    (void)state;
    struct progress p;
    struct buf text = {0};
    progress_begin(&p, 200000, false, &(struct headway_wish){.quiet = true, .json = -1});
    p.headway.done = 50000;
    tempo_note(&p.headway.tempo, INT64_C(100000000000), 50000);
    headway_text(&p.headway, INT64_C(100000000000), "", 0, &text);
    assert_string_equal(buf_str(&text),
                        "25 %  50000 of 200000 seeds  1800000 an hour  about 5m left");
    buf_fini(&text);
}

static void test_one_that_is_silent_says_nothing(void **state) {
    (void)state;
    struct progress p;
    progress_begin(&p, 10, true, &(struct headway_wish){.json = -1});
    progress_seen(&p, &(struct seeds_tally){.seeds = 5});
    assert_int_equal(p.headway.form, HEADWAY_NONE);
    assert_int_equal(p.headway.done, 0);
    progress_end(&p);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_says_marks_and_violations),
        cmocka_unit_test(test_it_counts_seeds_by_the_hour),
        cmocka_unit_test(test_one_that_is_silent_says_nothing),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
