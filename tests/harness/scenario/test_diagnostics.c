/* What is said of a bad scenario, where the file holds what a terminal obeys. */
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* The caret stands below the column as it is shown. */
static void test_what_a_terminal_would_obey_is_spelled_out(void **state) {
    (void)state;
    struct scratch x;
    struct buf want = {0};
    scratch_load(&x, "job:\n  run: [a]\n  env: {\"\u202e\302\233\": 1, b: [\"\\e[2J\"]}\n"
                     "\"\\e]0;x\\a\\nx: valid\": 1\n");
    buf_printf(
        &want,
        "%s:3:21: b must be a single value, not a list; values to run with one after the "
        "other stand in sweep\n"
        "      env: {\"\\u202e\\u009b\": 1, b: [\"\\e[2J\"]}\n"
        "                                  ^\n"
        "%s:4:2: scenario has no key \"\\x1b]0;x\\x07\\nx: valid\"; `rankquake explain scenario` "
        "lists those it has\n"
        "    \"\\e]0;x\\a\\nx: valid\": 1\n"
        "     ^\n",
        x.path, x.path);
    assert_string_equal(buf_str(&x.d.out), buf_str(&want));
    buf_fini(&want);
    scratch_drop(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_terminal_would_obey_is_spelled_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
