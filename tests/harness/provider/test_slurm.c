/* Hosts of an allocation of Slurm, as its variables name them. */
#include "harness/provider/provider.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct err err;

static int begin(void **state) {
    (void)state;
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_JOB_NODELIST", "n[1-3,07],m05", 1);
    unsetenv("SLURM_HET_SIZE");
    memset(&err, 0, sizeof(err));
    return 0;
}

static int end(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static int find(const char *const **ret, size_t *ret_n) {
    return provider_find("slurm")->find(&arena, ret, ret_n, &err);
}

static void refused(const char *words) {
    const char *const *names = NULL;
    size_t n = 0;
    assert_true(find(&names, &n) < 0);
    assert_null(names);
    if (!strstr(err.msg, words))
        fail_msg("\"%s\" is not in \"%s\"", words, err.msg);
}

static void test_hosts_are_those_of_the_allocation_in_their_order(void **state) {
    (void)state;
    BUF_FINI struct buf b = {0};
    const char *const *names;
    size_t n;
    setenv("SLURM_HET_SIZE", "1", 1);
    assert_int_equal(find(&names, &n), 0);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s ", names[i]);
    assert_string_equal(buf_str(&b), "n1 n2 n3 n07 m05 ");
}

static void test_outside_of_an_allocation_it_is_said_how_to_get_one(void **state) {
    (void)state;
    unsetenv("SLURM_JOB_ID");
    refused("provider slurm needs an allocation, and this is none: start it by salloc");
    setenv("SLURM_JOB_ID", "", 1);
    refused("this is none");
}

static void test_what_names_no_hosts_is_refused_with_the_variable(void **state) {
    (void)state;
    setenv("SLURM_JOB_NODELIST", "n[3-1]", 1);
    refused("SLURM_JOB_NODELIST=n[3-1] in the environment: ");
    unsetenv("SLURM_JOB_NODELIST");
    refused("SLURM_JOB_NODELIST");
    setenv("SLURM_JOB_NODELIST", "n1", 1);
    setenv("SLURM_HET_SIZE", "2", 1);
    refused("heterogeneous job of Slurm (SLURM_HET_SIZE=2)");
}

static void test_other_providers_want_their_hosts_named(void **state) {
    (void)state;
    assert_null(provider_find("ssh")->find);
    assert_null(provider_find("exec")->find);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hosts_are_those_of_the_allocation_in_their_order,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_outside_of_an_allocation_it_is_said_how_to_get_one,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_what_names_no_hosts_is_refused_with_the_variable,
                                        begin, end),
        cmocka_unit_test(test_other_providers_want_their_hosts_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
