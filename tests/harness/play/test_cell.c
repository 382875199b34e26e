/* One run of a comparison: why it came to no verdict. */
#include "harness/play/cell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_the_reason_is_the_last_sentence_of_run_without_its_file(void **state) {
    (void)state;
    struct arena a = {0};
    assert_string_equal(cell_reason(&a,
                                    "control run: once without the timeline\n"
                                    "rankquake run: a note\n"
                                    "rankquake run: s/a.yaml: the job failed in the control run\n"
                                    "--- last lines of n0\nx\n",
                                    "s/a.yaml"),
                        "the job failed in the control run");
    assert_string_equal(cell_reason(&a, "rankquake run: --seed x: write a number\n", "s/a.yaml"),
                        "--seed x: write a number");
    arena_fini(&a);
}

static void test_a_run_that_said_nothing_is_told_so(void **state) {
    (void)state;
    struct arena a = {0};
    assert_string_equal(cell_reason(&a, "", "a.yaml"), "it said nothing");
    assert_string_equal(cell_reason(&a, "some\nwords\n", "a.yaml"), "it said nothing");
    arena_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_reason_is_the_last_sentence_of_run_without_its_file),
        cmocka_unit_test(test_a_run_that_said_nothing_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
