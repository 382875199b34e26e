/* The overview of several runs: what happened in a few words, what did not pass, what was not
 * judged. */
#include "reports/overview.h"
#include "tests/reports/told.h"

static void look(const char *history, const struct edit *edits, struct overview *o,
                 struct overview_row *row) {
    struct told t;
    tell(&t, history, edits, "terminal", (struct report_style){0});
    *row = (struct overview_row){.name = history, .exit_code = t.verdict.exit_code, .link = "x"};
    overview_read(o, row, &t.run);
    forget(&t);
}

static void test_a_run_is_told_in_a_few_words_and_figures(void **state) {
    (void)state;
    static const struct edit none[1];
    struct overview o = {0};
    struct overview_row row;
    look("worker-killed", none, &o, &row);
    assert_string_equal(row.what, "started again with 2 workers");
    assert_int_equal(row.exit_code, 0);
    assert_int_equal(row.detect_ns / 1000000, 2);
    assert_int_equal(row.recover_ns / 1000000, 39);
    assert_int_equal(row.lost_steps, 1);
    assert_true(o.steps);
    assert_string_equal(row.seen, "");
    look("node-powered-off", none, &o, &row);
    assert_non_null(strstr(row.what, "went on with"));
}

static void test_what_failed_is_named_with_its_check(void **state) {
    (void)state;
    static const struct edit off_by_one[] = {{"\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"2\""},
                                             {0}};
    struct overview o = {.title = "t", .command = "c"};
    struct overview_row row;
    struct buf out = {0};
    look("worker-killed", off_by_one, &o, &row);
    assert_string_equal(row.check, "restart_count");
    o.rows = &row;
    o.rows_n = 1;
    overview_put(&o, &(struct report_style){0}, &out);
    assert_non_null(strstr(buf_str(&out), "x worker-killed     failed"));
    assert_non_null(strstr(buf_str(&out), "worker-killed: failed, restart_count\n"));
    assert_non_null(strstr(buf_str(&out), "expected  TORCHELASTIC_RESTART_COUNT 1 in round 2"));
    buf_fini(&out);
}

static void test_a_fault_that_did_not_come_is_not_told_as_one(void **state) {
    (void)state;
    static const struct edit edits[] = {{"fault-in-force", NULL, "", NULL}, {0}};
    struct overview o = {0};
    struct overview_row row;
    look("worker-killed", edits, &o, &row);
    assert_string_equal(row.what, "the fault did not happen");
}

/* What ends when everything is taken down, nobody has noticed. */
static void test_an_interrupted_run_is_told_as_that(void **state) {
    (void)state;
    static const struct edit hung[] = {
        {"fault-in-force", NULL, NULL,
         "{\"t\":342071000000,\"source\":\"harness\",\"kind\":\"interrupted\",\"signal\":2}"},
        {"worker-exit", "\"pid\":110", "\"t\":1073", "\"t\":342073"},
        {0}};
    static const struct edit early[] = {
        {"fault-in-force", NULL, NULL,
         "{\"t\":1072000000,\"source\":\"harness\",\"kind\":\"interrupted\",\"signal\":2}"},
        {"fault-in-force", NULL, "", NULL},
        {0}};
    struct overview o = {0};
    struct overview_row row;
    look("worker-killed", hung, &o, &row);
    assert_string_equal(row.what, "interrupted 341 s after the fault; nobody had noticed");
    assert_true(row.detect_ns < 0 && row.recover_ns < 0 && row.lost_steps < 0);
    assert_int_equal(row.exit_code, 130);
    look("worker-killed", early, &o, &row);
    assert_string_equal(row.what, "interrupted before the fault");
}

/* The job ended well, and nothing was done to it. */
static void test_a_job_that_was_over_before_its_fault_is_seen_as_such(void **state) {
    (void)state;
    static const struct edit over[] = {
        {"fault-fired", NULL, NULL,
         "{\"t\":1159000000,\"source\":\"harness\",\"kind\":\"fault-not-fired\",\"id\":\"kill\","
         "\"why\":\"the job ended before its trigger came true\"}"},
        {"fault-fired", NULL, "", NULL},
        {"fault-in-force", NULL, "", NULL},
        {"fault-evidence", NULL, "", NULL},
        {0}};
    static const struct edit none[1];
    struct overview o = {0};
    struct overview_row row;
    look("worker-killed", over, &o, &row);
    assert_true(row.over_before);
    look("worker-killed", none, &o, &row);
    assert_false(row.over_before);
}

static void test_only_what_no_run_could_judge_is_said(void **state) {
    (void)state;
    static const struct edit none[1], silent[] = {{"\"source\":\"job\"", NULL, "", NULL}, {0}};
    static const char *const fix[] = {"tell more", NULL};
    struct overview o = {.fix = fix};
    struct overview_row row;
    struct buf out = {0};
    look("worker-killed", silent, &o, &row);
    o.rows = &row;
    o.rows_n = 1;
    overview_put(&o, &(struct report_style){0}, &out);
    assert_non_null(strstr(buf_str(&out), "  - samples: the job reports no steps\n"));
    assert_non_null(strstr(buf_str(&out), "  tell more\n"));
    look("worker-killed", none, &o, &row);
    buf_clear(&out);
    overview_put(&o, &(struct report_style){0}, &out);
    assert_null(strstr(buf_str(&out), "samples:"));
    buf_fini(&out);
}

static void test_the_page_escapes_and_leads_to_the_reports(void **state) {
    (void)state;
    struct overview_row row = {.name = "a<b", .link = "dir \"x\"", .exit_code = 1, .what = "<i>"};
    struct overview o = {.title = "<t>", .command = "x && y", .rows = &row, .rows_n = 1};
    struct buf out = {0};
    overview_html(&o, &out);
    assert_non_null(strstr(buf_str(&out), "href=\"dir &quot;x&quot;/report.html\">a&lt;b</a>"));
    assert_null(strstr(buf_str(&out), "<i>"));
    assert_null(strstr(buf_str(&out), "<t>"));
    assert_non_null(strstr(buf_str(&out), "x &amp;&amp; y"));
    buf_fini(&out);
}

static void test_a_narrow_terminal_gets_short_lines(void **state) {
    (void)state;
    static const struct edit none[1];
    struct overview o = {0};
    struct overview_row row;
    struct buf out = {0};
    look("worker-killed", none, &o, &row);
    o.rows = &row;
    o.rows_n = 1;
    overview_put(&o, &(struct report_style){.width = 60}, &out);
    for (const char *p = buf_str(&out); *p; p += strcspn(p, "\n") + 1)
        assert_true(strcspn(p, "\n") <= 60);
    buf_fini(&out);
}

static void test_columns_never_run_together(void **state) {
    (void)state;
    struct overview_row rows[] = {
        {.name = "control run",
         .what = "4 workers, 13.6 s, steps to 120000",
         .detect_ns = -1,
         .recover_ns = -1,
         .lost_steps = -1},
        {.name = "node-powered-off",
         .exit_code = 130,
         .link = "x",
         .what = "failed; started again with 4 workers, after 12 rounds",
         .detect_ns = 1000000,
         .recover_ns = 341000000000,
         .lost_steps = 12345},
    };
    struct overview o = {.rows = rows, .rows_n = 2};
    for (int width = 80; width <= 120; width += 20) {
        struct buf out = {0};
        overview_put(&o, &(struct report_style){.width = width}, &out);
        for (const char *p = buf_str(&out); *p; p += strcspn(p, "\n") + 1)
            assert_true(strcspn(p, "\n") <= (size_t)width);
        const char *first = strstr(buf_str(&out), "control run");
        assert_true(strstr(first, "-        -        -\n") < strstr(first, "node-powered-off"));
        assert_non_null(strstr(buf_str(&out), " 1 ms     341.0 s  12345\n"));
        buf_fini(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_is_told_in_a_few_words_and_figures),
        cmocka_unit_test(test_what_failed_is_named_with_its_check),
        cmocka_unit_test(test_a_fault_that_did_not_come_is_not_told_as_one),
        cmocka_unit_test(test_an_interrupted_run_is_told_as_that),
        cmocka_unit_test(test_a_job_that_was_over_before_its_fault_is_seen_as_such),
        cmocka_unit_test(test_only_what_no_run_could_judge_is_said),
        cmocka_unit_test(test_the_page_escapes_and_leads_to_the_reports),
        cmocka_unit_test(test_a_narrow_terminal_gets_short_lines),
        cmocka_unit_test(test_columns_never_run_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
