/* The page of a trend file: a chart for each measure, the first bad commit, and texts that are
 * anybody's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "reports/trend/trend_page.h"

#include <stdio.h>
#include <string.h>

enum { COMMITS = 8, EACH = 10, RUNS = COMMITS * EACH };
static const struct gate_options options = {.runs = GATE_RUNS, .level = 0.01, .slower = 0.1};

struct fixture {
    struct trend_entry entries[RUNS], *pointers[RUNS];
    struct trend_measure measures[RUNS][3];
    char commits[COMMITS][16];
    struct logbook book;
};

/* Eight commits, ten runs each, with a little noise; from `slow` on by so much slower. */
static void fill(struct fixture *f, size_t slow, double longer) {
    memset(f, 0, sizeof(*f));
    for (size_t i = 0; i < RUNS; i++) {
        double ms = 100 + (double)(i * 7 % 11), by = i / EACH >= slow ? longer : 1;
        snprintf(f->commits[i / EACH], sizeof(f->commits[0]), "c%zu<&>", i / EACH);
        f->measures[i][0] = (struct trend_measure){"kill/recover", ms * by};
        f->measures[i][1] = (struct trend_measure){"job", 900 + ms};
        f->measures[i][2] = (struct trend_measure){"kill/detect", 1};
        f->entries[i] = (struct trend_entry){.id = "x",
                                             .time_ns = (int64_t)i,
                                             .origin = {f->commits[i / EACH], "main", "m"},
                                             .scenario = "s",
                                             .launcher = "l",
                                             .check = "",
                                             .calibration_ms = 2,
                                             .v = f->measures[i],
                                             .n = 3};
        f->pointers[i] = &f->entries[i];
    }
    f->book.v = f->pointers;
    f->book.n = RUNS;
}

static const struct trend_series *named(const struct series_list *l, const char *measure) {
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i].measure, measure))
            return &l->v[i];
    return NULL;
}

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
