#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/preflight/bisection.h"
#include "harness/preflight/preflight.h"
#include "harness/preflight/results.h"
#include "harness/preflight/spread.h"

#include <stdbool.h>
#include <string.h>

/* ---- who spoils it ---- */

struct world {
    unsigned bad;  /* bits */
    bool together; /* two bad ones are needed to spoil it */
    size_t asked;
};

static bool well(void *arg, const size_t *v, size_t n) {
    struct world *w = arg;
    unsigned met = 0;
    assert_true(n >= 2);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(v[i], v[k]);
        met |= 1U << v[i];
    }
    w->asked++;
    met &= w->bad;
    return w->together ? met != w->bad : met == 0;
}

static void test_one_that_spoils_it_is_found_wherever_it_is(void **state) {
    (void)state;
    for (size_t n = 3; n <= 20; n++)
        for (size_t bad = 0; bad < n; bad++) {
            struct world w = {.bad = 1U << bad};
            size_t found[20];
            assert_int_equal(bisection_find(n, well, &w, found), 1);
            assert_int_equal(found[0], bad);
            assert_true(w.asked <= 12);
        }
}

static void test_of_two_hosts_nobody_can_tell(void **state) {
    (void)state;
    struct world w = {.bad = 2};
    size_t found[2];
    assert_int_equal(bisection_find(2, well, &w, found), 2);
}

static void test_what_only_all_do_is_nobodys(void **state) {
    (void)state;
    struct world w = {.bad = 1 | 1 << 7, .together = true};
    size_t found[8];
    assert_int_equal(bisection_find(8, well, &w, found), 8);
}

/* Of several, one that is bad by itself is named, never one that is good. */
static void test_a_good_host_is_never_blamed_alone(void **state) {
    (void)state;
    for (unsigned bad = 1; bad < 1U << 6; bad++) {
        struct world w = {.bad = bad};
        size_t found[6];
        if (bisection_find(6, well, &w, found) == 1)
            assert_true(bad >> found[0] & 1);
    }
}

/* ---- who is out of line ---- */

static void test_a_figure_far_from_the_others_is_out(void **state) {
    (void)state;
    double v[] = {100, 104, 98, 30, 101};
    double middle = spread_median(v, 5), mad = spread_mad(v, 5, middle);
    assert_true(spread_is_out(30, middle, mad, false));
    assert_false(spread_is_out(98, middle, mad, false));
    assert_false(spread_is_out(300, middle, mad, false));
    assert_true(spread_is_out(300, middle, mad, true));
}

static void test_an_order_of_magnitude_is_out_whatever_the_others_are(void **state) {
    (void)state;
    double v[] = {60, 170, 2.5, 280};
    double middle = spread_median(v, 4), mad = spread_mad(v, 4, middle);
    assert_true(2.5 > middle - 3 * mad);
    assert_true(spread_is_out(2.5, middle, mad, false));
    assert_false(spread_is_out(60, middle, mad, false));
    assert_true(spread_is_out(1200, middle, mad, true));
}

static void test_figures_that_are_nearly_equal_are_not_told_apart(void **state) {
    (void)state;
    double v[] = {100, 100, 100, 99, 70};
    double middle = spread_median(v, 5), mad = spread_mad(v, 5, middle);
    assert_false(spread_is_out(70, middle, mad, false));
    assert_true(spread_is_out(60, middle, mad, false));
}

/* ---- hosts as they are typed ---- */

static void test_hosts_have_names_and_addresses(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    struct preflight_host *v;
    assert_int_equal(preflight_hosts("n0,n1=10.0.0.2", &a, &v, NULL), 2);
    assert_string_equal(v[0].address, "n0");
    assert_string_equal(v[1].name, "n1");
    assert_string_equal(v[1].address, "10.0.0.2");
    static const char *const bad[] = {"", "n0,", "n0,n0", "n0=", "-oProxyCommand=x", "a b", "../x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct err err = {0};
        assert_true(preflight_hosts(bad[i], &a, &v, &err) < 0);
        assert_non_null(strstr(err.msg, "n0,n1=10.0.0.2"));
    }
}

/* ---- results of other programs ---- */

static void assert_result(const char *text, const char *kind, enum probe_status status,
                          const char *seen) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    struct probe_answer a;
    json_object(&w, NULL);
    const char *found = results_read(text, strlen(text), &a, &w, NULL);
    assert_non_null(found);
    assert_string_equal(found, kind);
    assert_int_equal(a.status, status);
    if (!strstr(a.seen, seen))
        assert_string_equal(a.seen, seen);
}

#define NCCL(bad)                                                                                  \
    "# nThread 1 nGpus 1 minBytes 8\n#\n  8  2  float  sum  -1  30.1  0.00  0.00  0\n"             \
    "# Out of bounds values : " bad "\n"

static void test_nccl_tests_are_judged_by_their_last_lines(void **state) {
    (void)state;
    assert_result(NCCL("0 OK") "# Avg bus bandwidth    : 186.123 \n#\n", "nccl-tests", PROBE_PASS,
                  "186.12 GB/s");
    assert_result(NCCL("3 FAILED") "# Avg bus bandwidth    : 186.123 \n#\n", "nccl-tests",
                  PROBE_FAIL, "3 values were out of bounds");
    assert_result(NCCL("0 OK"), "nccl-tests", PROBE_FAIL, "did not come to its end");
}

#define NCCL_HEAD                                                                                  \
    "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) validation: 1\n"
#define NCCL_END(bad) "# Out of bounds values : " bad "\n# Avg bus bandwidth    : 100.5 \n#\n"

static void test_nccl_tests_that_fail_say_how(void **state) {
    (void)state;
    assert_result(
        NCCL_HEAD "h1: Test NCCL failure common.cu:958 'remote process exited'\n .. h1 pid 7\n",
        "nccl-tests", PROBE_FAIL, "Test NCCL failure common.cu:958 'remote process exited'");
    assert_result(
        NCCL_HEAD
        "  1048576  262144  float  sum  -1  30.1  0.10  0.20  0  30.0  0.10  0.20  0\n"
        "  2097152  524288  float  sum  -1  30.1  0.10  0.20  0  30.0  0.10  0.20  7\n" NCCL_END(
            "7 FAILED"),
        "nccl-tests", PROBE_FAIL, "7 values were out of bounds, first with 2097152 bytes");
    assert_result(NCCL_HEAD NCCL_END("0 OK") NCCL_HEAD NCCL_END("5 FAILED"), "nccl-tests",
                  PROBE_FAIL, "5 values were out of bounds");
    assert_result(NCCL_HEAD NCCL_END("0 OK") NCCL_HEAD "# Out of bounds values : 0 OK\n",
                  "nccl-tests", PROBE_FAIL, "did not come to its end");
}

static void test_fio_is_judged_by_the_errors_of_its_jobs(void **state) {
    (void)state;
    static const char good[] =
        "fio: a warning\n{\"fio version\":\"fio-3.33\",\"jobs\":[{\"jobname\":\"ckpt\","
        "\"error\":0,\"read\":{\"bw\":0},\"write\":{\"bw\":204800}}]}\n";
    static const char bad[] =
        "{\"fio version\":\"fio-3.33\",\"jobs\":[{\"jobname\":\"ckpt\",\"error\":28}]}";
    assert_result(good, "fio", PROBE_PASS, "200 MiB/s written");
    assert_result(bad, "fio", PROBE_FAIL, "job ckpt ended with error 28 (No space left on device)");
}

#define DCGM(name, status)                                                                         \
    "{\"" name "\":{\"test_categories\":[{\"category\":\"Hardware\",\"tests\":[{\"name\":\"GPU "   \
    "Memory\",\"results\":[{\"gpu_ids\":\"0\",\"status\":\"PASS\"},{\"gpu_ids\":\"1\","            \
    "\"status\":\"" status "\"}]}]}]}}"

static void test_dcgm_names_what_failed_and_where(void **state) {
    (void)state;
    assert_result(DCGM("DCGM GPU Diagnostic", "PASS"), "dcgm", PROBE_PASS, "2 tests passed");
    assert_result(DCGM("DCGM Diagnostic", "Skip"), "dcgm", PROBE_PASS, "1 were skipped");
    assert_result(DCGM("DCGM Diagnostic", "Warn"), "dcgm", PROBE_FAIL,
                  "GPU Memory ended with \"Warn\" on GPU 1");
    assert_result(DCGM("DCGM Diagnostic",
                       "Fail\",\"warnings\":[{\"warning\":\"rows are remapped\"}],\"x\":\""),
                  "dcgm", PROBE_FAIL, "GPU Memory failed on GPU 1: rows are remapped");
    assert_result(DCGM("DCGM Diagnostic", "Fail\",\"warnings\":\"rows are remapped\",\"x\":\""),
                  "dcgm", PROBE_FAIL, "GPU Memory failed on GPU 1: rows are remapped");
    assert_result("{\"DCGM Diagnostic\":{\"runtime_error\":\"no GPU\\nmore\"}}", "dcgm", PROBE_FAIL,
                  "it broke off: no GPU");
    assert_result(DCGM("DCGM Diagnostic", "FAIL"), "dcgm", PROBE_FAIL,
                  "GPU Memory failed on GPU 1");
    assert_result("{\"DCGM Diagnostic\":{\"test_categories\":[]}}", "dcgm", PROBE_FAIL,
                  "nothing was tested");
}

static void test_superbench_is_judged_by_return_codes(void **state) {
    (void)state;
    assert_result("{\"node\":\"a\",\"gemm/return_code\":0,\"gemm/fp16\":312.5}\n"
                  "{\"node\":\"b\",\"gemm/return_code\":0}\n",
                  "superbench", PROBE_PASS, "2 node(s)");
    assert_result(
        "{\"node\":\"a\",\"gemm/return_code\":0}\n{\"node\":\"b\",\"gemm/return_code\":4}\n",
        "superbench", PROBE_FAIL, "b: gemm ended with 4");
}

static void test_superbench_of_which_something_lacks_fails(void **state) {
    (void)state;
    assert_result("{\"node\":\"a\",\"gemm/return_code:0\":0,\"gemm/return_code:1\":124}\n",
                  "superbench", PROBE_FAIL, "a: gemm ended with 124");
    assert_result("{\"node\":\"a\",\"gemm/return_code\":0}\n{\"node\":\"b\",\"gemm/fp16\":NaN}\n",
                  "superbench", PROBE_FAIL, "line 2 cannot be read");
    assert_result("{\"node\":\"a\",\"gemm/return_code\":0,\"bw/return_code\":0}\n"
                  "{\"node\":\"b\",\"gemm/return_code\":0}\n",
                  "superbench", PROBE_FAIL, "b has no bw/return_code, which a has");
    assert_result("{\"node\":\"a\",\"gemm/return_code\":null}\n", "superbench", PROBE_FAIL,
                  "a: gemm has no return code");
}

/* What was cut anywhere is refused or fails: it never passes. */
static void test_a_result_that_was_cut_never_passes(void **state) {
    static const char *const whole[] = {
        NCCL_HEAD NCCL_END("0 OK"),
        "{\"fio version\":\"fio-3.33\",\"jobs\":[{\"jobname\":\"ckpt\",\"error\":0}]}\n",
        DCGM("DCGM Diagnostic", "Pass") "\n",
        "{\"node\":\"a\",\"gemm/return_code\":0}\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++) {
        size_t end = strlen(whole[i]) - (i == 0 ? 3 : 1); /* "\n#\n", "\n": nothing is said there */
        for (size_t len = 0; len < end; len++) {
            BUF_FINI struct buf out = {0}, part = {0};
            struct json_writer w = {.out = &out};
            struct probe_answer a;
            buf_put(&part, whole[i], len);
            json_object(&w, NULL);
            if (results_read(buf_str(&part), len, &a, &w, NULL))
                assert_int_equal(a.status, PROBE_FAIL);
        }
    }
}

static void test_other_texts_are_no_results(void **state) {
    (void)state;
    static const char *const bad[] = {"",   "{}", "hello", "{\"jobs\":[]}", "{\"node\":\"a\"}",
                                      "[1]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        BUF_FINI struct buf out = {0};
        struct json_writer w = {.out = &out};
        struct probe_answer a;
        struct err err = {0};
        json_object(&w, NULL);
        assert_null(results_read(bad[i], strlen(bad[i]), &a, &w, &err));
        assert_non_null(strstr(err.msg, "nccl-tests"));
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_that_spoils_it_is_found_wherever_it_is),
        cmocka_unit_test(test_of_two_hosts_nobody_can_tell),
        cmocka_unit_test(test_what_only_all_do_is_nobodys),
        cmocka_unit_test(test_a_good_host_is_never_blamed_alone),
        cmocka_unit_test(test_a_figure_far_from_the_others_is_out),
        cmocka_unit_test(test_an_order_of_magnitude_is_out_whatever_the_others_are),
        cmocka_unit_test(test_figures_that_are_nearly_equal_are_not_told_apart),
        cmocka_unit_test(test_hosts_have_names_and_addresses),
        cmocka_unit_test(test_nccl_tests_are_judged_by_their_last_lines),
        cmocka_unit_test(test_nccl_tests_that_fail_say_how),
        cmocka_unit_test(test_fio_is_judged_by_the_errors_of_its_jobs),
        cmocka_unit_test(test_dcgm_names_what_failed_and_where),
        cmocka_unit_test(test_superbench_is_judged_by_return_codes),
        cmocka_unit_test(test_superbench_of_which_something_lacks_fails),
        cmocka_unit_test(test_a_result_that_was_cut_never_passes),
        cmocka_unit_test(test_other_texts_are_no_results),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
