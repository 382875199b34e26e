/* Texts that nobody may read: covered wherever they stand, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hidden.h"

#include <string.h>

static struct hidden two(void) {
    struct hidden h = {0};
    hidden_add(&h, "hunter-22");
    hidden_add(&h, "22-abcdef");
    return h;
}

static void test_what_overlaps_is_covered_whole(void **state) {
    (void)state;
    struct hidden h = two();
    char text[] = "a hunter-22-abcdef, hunter-2 and hunter-22";
    assert_int_equal(hidden_cover(&h, text, strlen(text)), 3);
    assert_string_equal(text, "a ****************, hunter-2 and *********");
    hidden_fini(&h);
}

static void test_a_short_text_covers_nothing(void **state) {
    (void)state;
    struct hidden h = {0};
    hidden_add(&h, "true");
    hidden_add(&h, "");
    char text[] = "true is true";
    assert_int_equal(hidden_cover(&h, text, strlen(text)), 0);
    assert_string_equal(text, "true is true");
    assert_int_equal(hidden_cover(&h, NULL, 0), 0);
}

static void test_a_beginning_at_the_end_is_known(void **state) {
    (void)state;
    struct hidden h = two();
    assert_int_equal(hidden_unfinished(&h, "x hunter-", 9), 7);
    assert_int_equal(hidden_unfinished(&h, "x hunter-22", 11), 2); /* may begin the other one */
    assert_int_equal(hidden_unfinished(&h, "x hunter?", 9), 0);
    assert_int_equal(hidden_unfinished(&h, "", 0), 0);
    hidden_fini(&h);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_overlaps_is_covered_whole),
        cmocka_unit_test(test_a_short_text_covers_nothing),
        cmocka_unit_test(test_a_beginning_at_the_end_is_known),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
