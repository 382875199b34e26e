#include "scenarios/jobs/ranktrain/gpu/nccl_interface.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void test_lists_are_read_as_nccl_reads_them(void **state) {
    (void)state;
    static const struct {
        const char *list, *name;
        int fits;
    } rows[] = {
        {"eth", "eth0", 1},     {"eth", "eth", 1},         {"eth0", "eth", 0},
        {"=eth0", "eth0", 1},   {"=eth0", "eth01", 0},     {"=eth", "eth0", 0},
        {"ib,eth", "eth3", 1},  {"ib,eth", "lo", 0},       {"=ib0,eth0", "eth0", 1},
        {"^docker", "eth0", 1}, {"^docker", "docker0", 0}, {"^docker,lo", "lo", 0},
        {"^=eth0", "eth0", 0},  {"^=eth0", "eth01", 1},    {"eth0:1", "eth0", 1},
        {"=eth0:1", "eth0", 1}, {"", "eth0", 0},           {",eth", "eth0", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (!!nccl_interface_fits(rows[i].list, rows[i].name) != rows[i].fits)
            fail_msg("%s and %s", rows[i].list, rows[i].name);
}

static void test_a_name_that_is_there_is_accepted(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(nccl_interface_check(NULL, &err), 0);
    assert_int_equal(nccl_interface_check("", &err), 0);
    assert_int_equal(nccl_interface_check("lo", &err), 0);
    assert_int_equal(nccl_interface_check("=lo", &err), 0);
    assert_int_equal(err.code, 0);
}

static void test_a_name_that_is_not_there_is_refused_with_those_that_are(void **state) {
    (void)state;
    static const char *const lists[] = {"=chaos9", "chaos9,chaos8", "=lo9"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        struct err err = {0};
        assert_int_equal(nccl_interface_check(lists[i], &err), -ENODEV);
        assert_non_null(strstr(err.msg, lists[i]));
        assert_non_null(strstr(err.msg, "lo"));
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_are_read_as_nccl_reads_them),
        cmocka_unit_test(test_a_name_that_is_there_is_accepted),
        cmocka_unit_test(test_a_name_that_is_not_there_is_refused_with_those_that_are),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
