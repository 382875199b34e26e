#include "base/sys/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int64_t fulls(const char *text) {
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(f);
    int64_t n = limits_table_fulls(f);
    fclose(f);
    return n;
}

/* As Linux 6.18 writes it. */
static void test_refused_neighbours_of_all_processors_are_counted(void **state) {
    assert_int_equal(
        fulls("entries  allocs   destroys hash_grows lookups  unresolved_discards table_fulls\n"
              "00001095 00012573 00010836 00000006   00074148 00000000            000014e1\n"
              "00001095 00011c83 0001292b 00000004   0007f6cd 00000000            0000190a\n"),
        0x14e1 + 0x190a);
}

static void test_a_kernel_that_does_not_count_them_says_nothing(void **state) {
    assert_int_equal(fulls("entries  allocs\n00001095 00012573\n"), -1);
    assert_int_equal(fulls("entries table_fulls\n"), -1);
    assert_int_equal(fulls("\n"), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_neighbours_of_all_processors_are_counted),
        cmocka_unit_test(test_a_kernel_that_does_not_count_them_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
