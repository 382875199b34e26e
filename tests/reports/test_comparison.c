/* The same scenarios under several launchers, side by side. */
#include "reports/comparison/comparison.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static const struct comparison_launcher launchers[] = {
    {.name = "rankrun", .words = "rankrun", .version = ""},
    {.name = "torchrun@sid",
     .words = "torchrun",
     .rootfs = "/trees/sid",
     .version = "torch 2.14.1, Python 3.14"},
};

static struct finding finding(const char *check, enum finding_status status, const char *seen) {
    struct finding f = {.check = check, .status = status};
    str_copy(f.seen, sizeof(f.seen), seen);
    if (status == FINDING_FAIL)
        str_copy(f.expected, sizeof(f.expected), "the opposite");
    return f;
}

/* One that passed, and one that stayed down; the third check is skipped in one and the second
 * passes in both. */
static struct comparison_cell cells[2];
static struct comparison_row row = {.scenario = "node-joins", .about = "A < B", .cells = cells};
static const struct comparison comparison = {.command = "rankquake compare x",
                                             .launchers = launchers,
                                             .launchers_n = 2,
                                             .rows = &row,
                                             .rows_n = 1};

static int set_up(void **state) {
    (void)state;
    cells[0] = (struct comparison_cell){
        .judged = true, .why = "", .dir = "a/b", .recover_ns = 1234000000, .detect_ns = 5000000};
    cells[0].verdict.v[0] = finding("outcome", FINDING_PASS, "succeeded");
    cells[0].verdict.v[1] = finding("agreement", FINDING_PASS, "one world size");
    cells[0].verdict.v[2] = finding("restart_count", FINDING_PASS, "0");
    cells[0].verdict.n = 3;
    cells[1] = (struct comparison_cell){.judged = true,
                                        .why = "",
                                        .exit_code = 1,
                                        .recover_ns = -1,
                                        .detect_ns = -1,
                                        .stayed_down = true,
                                        .took_ns = 90000000000};
    cells[1].verdict.v[0] = finding("agreement", FINDING_PASS, "one world size");
    cells[1].verdict.v[1] = finding("outcome", FINDING_FAIL, "agents ended: <n0> 1");
    cells[1].verdict.v[2] = finding("restart_count", FINDING_SKIP, "not promised");
    cells[1].verdict.n = 3;
    return 0;
}

static const char *rendered(const char *name) {
    static struct buf out;
    static const struct report_style plain = {.unicode = true};
    buf_clear(&out);
    comparison_report_find(name)->render(&comparison, &plain, &out);
    return buf_str(&out);
}

static void test_a_difference_is_a_check_that_one_passes_and_another_does_not(void **state) {
    (void)state;
    const char *checks[COMPARISON_CHECKS_MAX];
    assert_int_equal(comparison_differences(&row, 2, checks), 1);
    assert_string_equal(checks[0], "outcome");
    cells[1].verdict.v[2].status = FINDING_UNKNOWN;
    assert_int_equal(comparison_differences(&row, 2, checks), 2);
    cells[0].verdict.v[0].status = FINDING_FAIL; /* both fail: no difference */
    assert_int_equal(comparison_differences(&row, 2, checks), 1);
    assert_string_equal(checks[0], "restart_count");
}

static void test_the_table_says_verdict_and_recovery_and_explains(void **state) {
    (void)state;
    const char *text = rendered("terminal");
    assert_non_null(strstr(text, "scenario    rankrun         torchrun@sid\n"
                                 "node-joins  passed, 1.23 s  failed, stayed down\n"));
    assert_non_null(strstr(text, "  outcome\n    \u2713 rankrun: succeeded\n"
                                 "    \u2717 torchrun@sid: agents ended: <n0> 1\n"
                                 "      expected: the opposite\n"));
    assert_null(strstr(text, "agreement"));
    assert_non_null(
        strstr(text, "torchrun@sid: torchrun, torch 2.14.1, Python 3.14, in /trees/sid\n"));
    assert_non_null(strstr(text, "again: rankquake compare x\n"));
}

static void test_a_run_without_a_verdict_says_why(void **state) {
    (void)state;
    cells[1] = (struct comparison_cell){.exit_code = 4, .why = "no module torch"};
    assert_non_null(strstr(rendered("terminal"), "torchrun@sid: skipped: no module torch"));
    assert_non_null(strstr(rendered("html"), "skipped: no module torch"));
    assert_non_null(strstr(rendered("json"), "\"why\":\"no module torch\""));
}

static void test_the_page_escapes_what_it_shows_and_links_to_the_runs(void **state) {
    (void)state;
    const char *text = rendered("html");
    assert_non_null(strstr(text, "agents ended: &lt;n0&gt; 1"));
    assert_non_null(strstr(text, "A &lt; B"));
    assert_null(strstr(text, "<n0>"));
    assert_non_null(strstr(text, "<a href=\"a/b/report.html\">passed, 1.23 s</a>"));
}

static void test_programs_read_all_findings(void **state) {
    (void)state;
    struct arena a = {0};
    const char *text = rendered("json");
    const struct json *j = json_parse(&a, text, strlen(text), NULL);
    assert_non_null(j);
    const struct json *first = json_get(j, "rows")->first;
    assert_string_equal(json_string(json_get(first, "differences")->first, ""), "outcome");
    const struct json *cell = json_get(first, "cells")->first;
    assert_string_equal(json_get_string(cell, "outcome", ""), "passed");
    assert_non_null(json_get(cell, "verdict"));
    assert_int_equal(json_get_i64(cell->next, "exit_code", 0), 1);
    assert_true(json_get_bool(cell->next, "stayed_down", false));
    arena_fini(&a);
}

static void test_every_rendering_can_be_found_by_its_name(void **state) {
    (void)state;
    for (size_t i = 0; comparison_reports[i]; i++) {
        assert_ptr_equal(comparison_report_find(comparison_reports[i]->name),
                         comparison_reports[i]);
        assert_true(*comparison_reports[i]->summary && *comparison_reports[i]->file);
    }
    assert_null(comparison_report_find("pdf"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_difference_is_a_check_that_one_passes_and_another_does_not,
                               set_up),
        cmocka_unit_test_setup(test_the_table_says_verdict_and_recovery_and_explains, set_up),
        cmocka_unit_test_setup(test_a_run_without_a_verdict_says_why, set_up),
        cmocka_unit_test_setup(test_the_page_escapes_what_it_shows_and_links_to_the_runs, set_up),
        cmocka_unit_test_setup(test_programs_read_all_findings, set_up),
        cmocka_unit_test_setup(test_every_rendering_can_be_found_by_its_name, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
