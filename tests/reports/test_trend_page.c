/* The page of a trend file: a chart for each measure, the first bad commit, and texts that are
 * anybody's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "reports/trend/trend_page.h"
#include "tests/harness/trend/eight_commits.h"

#include <stdio.h>
#include <string.h>

static size_t count(const char *text, const char *word) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

static void draw(struct fixture *f, struct buf *out) {
    struct series_wanted w = {0};
    struct series_list l;
    series_list_make(&l, &f->book, &w);
    assert_non_null(named(&l, "job"));
    for (size_t i = 0; i < l.n; i++)
        series_find_bad(&l.v[i], &options);
    trend_page(&l, &f->book, out);
    series_list_fini(&l);
}

static void test_each_measure_has_a_chart_and_the_bad_one_a_mark(void **state) {
    static struct fixture f;
    BUF_FINI struct buf out = {0};
    fill(&f, 5, 1.4);
    draw(&f, &out);
    assert_int_equal(count(buf_str(&out), "<svg"), 2);
    assert_int_equal(count(buf_str(&out), "<circle"), 2 * RUNS);
    assert_int_equal(count(buf_str(&out), "class=\"mark\""), 1);
    assert_non_null(strstr(buf_str(&out), "first bad commit: c5&lt;&amp;&gt;"));
    assert_null(strstr(buf_str(&out), "c5<&"));
    assert_null(strstr(buf_str(&out), "<script"));
    assert_null(strstr(buf_str(&out), "nan"));
}

static void test_runs_that_failed_are_listed(void **state) {
    static struct fixture f;
    BUF_FINI struct buf out = {0};
    fill(&f, COMMITS, 1);
    f.entries[12].exit_code = 1;
    f.entries[12].check = "restart_count";
    draw(&f, &out);
    assert_non_null(strstr(buf_str(&out), "<h2>Runs that failed</h2>"));
    assert_non_null(strstr(buf_str(&out), "<td>restart_count</td>"));
    assert_int_equal(count(buf_str(&out), "class=\"mark\""), 0);
}

static void test_an_empty_file_is_a_page_too(void **state) {
    struct series_list l = {0};
    struct logbook book = {0};
    BUF_FINI struct buf out = {0};
    trend_page(&l, &book, &out);
    assert_non_null(strstr(buf_str(&out), "<p>0 runs."));
    assert_non_null(strstr(buf_str(&out), "</html>"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_measure_has_a_chart_and_the_bad_one_a_mark),
        cmocka_unit_test(test_runs_that_failed_are_listed),
        cmocka_unit_test(test_an_empty_file_is_a_page_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
