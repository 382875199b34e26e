/* Where the first thing lies that is not below what is asked for. */
#include "harness/judge/checks/sorted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct thing {
    char before;
    int64_t at;
};

static int64_t at_of(const void *thing) {
    return ((const struct thing *)thing)->at;
}

static void test_the_first_of_equals_is_found_from_every_side(void **state) {
    (void)state;
    static const struct thing v[] = {{1, -9}, {2, 4}, {3, 4}, {4, 4}, {5, INT64_MAX}};
    static const struct {
        int64_t least;
        size_t found;
    } rows[] = {{INT64_MIN, 0}, {-9, 0}, {-8, 1}, {4, 1}, {5, 4}, {INT64_MAX, 4}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_int_equal(lower_bound(v, 5, sizeof(*v), at_of, rows[i].least), rows[i].found);
}

/* As many as there are is past the last one. */
static void test_all_lie_below_and_nothing_is_there(void **state) {
    (void)state;
    static const struct thing v[] = {{1, 1}, {2, 2}, {3, 3}};
    for (size_t n = 0; n <= 3; n++)
        assert_int_equal(lower_bound(v, n, sizeof(*v), at_of, 4), n);
    assert_int_equal(lower_bound(NULL, 0, sizeof(*v), at_of, 4), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_of_equals_is_found_from_every_side),
        cmocka_unit_test(test_all_lie_below_and_nothing_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
