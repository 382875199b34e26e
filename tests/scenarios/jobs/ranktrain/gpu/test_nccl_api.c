/* Finding NCCL and judging it. The fake (tests/fakes/nccl) lies beside the tests; the real one is
 * asked where there is one, for it needs no GPU for this. */
#include "scenarios/jobs/ranktrain/gpu/nccl_api.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char here[PATH_MAX - 128], fake[PATH_MAX];

/* A library stays where it is loaded, so each question is asked by a process of its own. Returns
 * what nccl_api_load returned. */
static int load(const char *lib, const char *overrides, struct nccl_api *ret, struct err *ret_err) {
    char command[3 * PATH_MAX], line[PATH_MAX + 32] = "";
    int r = 1;
    *ret = (struct nccl_api){0};
    snprintf(command, sizeof(command),
             "env -u NCCL_LIB %s%s RANKTRAIN_FAKE_NCCL=%s %s/spawn_nccl_load",
             lib ? "NCCL_LIB=" : "", lib ? lib : "", overrides, here);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    assert_true(sscanf(line, "%d %d %4095s", &r, &ret->version, ret->path) >= 2);
    if (!fgets(ret_err->msg, sizeof(ret_err->msg), f))
        *ret_err->msg = 0;
    assert_int_equal(pclose(f), 0);
    return r;
}

static void test_a_library_that_is_named_is_used(void **state) {
    (void)state;
    struct nccl_api api;
    struct err err;
    assert_int_equal(load(fake, "", &api, &err), 0);
    assert_string_equal(api.path, fake);
    assert_int_equal(api.version, 22809);
    assert_int_equal(load(fake, "version=21403", &api, &err), 0);
    assert_int_equal(load(fake, "version=23107", &api, &err), 0);
}

static void test_another_major_version_is_refused(void **state) {
    (void)state;
    struct nccl_api api;
    struct err err;
    assert_int_equal(load(fake, "version=30100", &api, &err), -ENOEXEC);
    assert_non_null(strstr(err.msg, "is NCCL 3.1.0: ranktrain speaks version 2"));
}

static void test_a_version_without_unblocking_communicators_is_refused(void **state) {
    (void)state;
    static const char *const old[][2] = {
        {"version=21304", "2.13.4"}, {"version=2708", "2.7.8"}, {"version=1309", "1.3.9"}};
    struct nccl_api api;
    struct err err;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(load(fake, old[i][0], &api, &err), -ENOEXEC);
        assert_non_null(strstr(err.msg, old[i][1]));
        assert_non_null(strstr(err.msg, "before 2.14"));
    }
}

static void test_a_named_library_that_is_not_there_is_not_replaced_by_another(void **state) {
    (void)state;
    struct nccl_api api;
    struct err err;
    assert_int_equal(load("/nonexistent/libnccl.so.2", "", &api, &err), -ENOENT);
    assert_non_null(strstr(err.msg, "NCCL_LIB=/nonexistent/libnccl.so.2"));
}

static void test_a_library_of_something_else_is_refused(void **state) {
    (void)state;
    struct nccl_api api;
    struct err err;
    assert_int_equal(load("libz.so.1", "", &api, &err), -ENOEXEC);
    assert_non_null(strstr(err.msg, "libz.so.1 is no NCCL"));
}

static void test_without_any_the_sentence_says_where_one_is_to_be_had(void **state) {
    (void)state;
    struct nccl_api api;
    struct err err;
    int r = load(NULL, "", &api, &err);
    if (r == 0) {
        print_message("this machine has %s, version %d\n", api.path, api.version);
        skip();
    }
    assert_int_equal(r, -ENOENT);
    assert_non_null(strstr(err.msg, "libnccl.so.2"));
    assert_non_null(strstr(err.msg, "NCCL_LIB"));
    assert_non_null(strstr(err.msg, "--dist-backend=tcp"));
}

static void test_the_real_one_is_found_and_has_all_that_is_needed(void **state) {
    (void)state;
    struct nccl_api api;
    struct err err;
    if (load(NULL, "", &api, &err) == -ENOENT)
        skip();
    assert_int_equal(load(NULL, "", &api, &err), 0);
    assert_true(api.version >= NCCL_OLDEST && api.version < 30000);
}

static void test_versions_are_written_as_nccl_writes_them(void **state) {
    (void)state;
    char name[24];
    assert_string_equal(nccl_version_name(22809, name), "2.28.9");
    assert_string_equal(nccl_version_name(21400, name), "2.14.0");
    assert_string_equal(nccl_version_name(2708, name), "2.7.8");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_library_that_is_named_is_used),
        cmocka_unit_test(test_another_major_version_is_refused),
        cmocka_unit_test(test_a_version_without_unblocking_communicators_is_refused),
        cmocka_unit_test(test_a_named_library_that_is_not_there_is_not_replaced_by_another),
        cmocka_unit_test(test_a_library_of_something_else_is_refused),
        cmocka_unit_test(test_without_any_the_sentence_says_where_one_is_to_be_had),
        cmocka_unit_test(test_the_real_one_is_found_and_has_all_that_is_needed),
        cmocka_unit_test(test_versions_are_written_as_nccl_writes_them),
    };
    if (readlink("/proc/self/exe", here, sizeof(here) - 1) <= 0)
        return 1;
    *strrchr(here, '/') = 0;
    snprintf(fake, sizeof(fake), "%s/../../../../fakes/libnccl.so.2", here);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
