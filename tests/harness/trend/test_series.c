/* Series: which there are, and the first bad commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "harness/trend/series.h"

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

static size_t first_bad(struct fixture *f, const char *measure) {
    struct series_wanted w = {0};
    struct series_list l;
    series_list_make(&l, &f->book, &w);
    size_t bad = RUNS;
    for (size_t i = 0; i < l.n; i++) {
        series_find_bad(&l.v[i], &options);
        if (str_eq(l.v[i].measure, measure))
            bad = l.v[i].bad;
    }
    series_list_fini(&l);
    return bad;
}

static void test_the_first_bad_commit_is_where_it_became_slower(void **state) {
    static struct fixture f;
    for (size_t slow = 4; slow < COMMITS; slow++) {
        fill(&f, slow, 1.3);
        assert_int_equal(first_bad(&f, "kill/recover"), slow * EACH);
        assert_int_equal(first_bad(&f, "job"), RUNS);
    }
}

static void test_where_nothing_changed_none_is_bad(void **state) {
    static struct fixture f;
    fill(&f, COMMITS, 1);
    assert_int_equal(first_bad(&f, "kill/recover"), RUNS);
    fill(&f, 5, 0.5); /* faster */
    assert_int_equal(first_bad(&f, "kill/recover"), RUNS);
    fill(&f, 5, 1.05); /* by less than is told */
    assert_int_equal(first_bad(&f, "kill/recover"), RUNS);
}

/* Runs that failed have no times, and those of another branch are not asked about. */
static void test_only_runs_that_passed_and_are_wanted_count(void **state) {
    static struct fixture f;
    static const char *const measures[] = {"kill/detect", NULL};
    struct series_list l;
    fill(&f, COMMITS, 1);
    f.entries[3].exit_code = 1;
    f.entries[5].origin.branch = "other";
    f.entries[7].origin.machine = "n";
    struct series_wanted w = {.branch = "main"};
    series_list_make(&l, &f.book, &w);
    assert_int_equal(l.n, 4); /* two measures, on two machines */
    assert_int_equal(named(&l, "job")->n, RUNS - 3);
    assert_null(named(&l, "kill/detect"));
    series_list_fini(&l);
    w = (struct series_wanted){.measures = measures};
    series_list_make(&l, &f.book, &w);
    assert_int_equal(named(&l, "kill/detect")->n, RUNS - 2);
    assert_null(named(&l, "job"));
    series_list_fini(&l);
    w = (struct series_wanted){.scenario = "another"};
    series_list_make(&l, &f.book, &w);
    assert_int_equal(l.n, 0);
    series_list_fini(&l);
}

static void test_values_have_their_units(void **state) {
    static const struct {
        const char *measure;
        double value;
        const char *text;
    } rows[] = {{"job", 1.234, "1.23 ms"},
                {"job", 812.4, "812 ms"},
                {"job", 12345, "12.35 s"},
                {"goodput", 64.25, "64.2 %"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        BUF_FINI struct buf out = {0};
        series_put_value(rows[i].measure, rows[i].value, &out);
        assert_string_equal(buf_str(&out), rows[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_bad_commit_is_where_it_became_slower),
        cmocka_unit_test(test_where_nothing_changed_none_is_bad),
        cmocka_unit_test(test_only_runs_that_passed_and_are_wanted_count),
        cmocka_unit_test(test_values_have_their_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
