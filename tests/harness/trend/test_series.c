/* Series: which there are, and the first bad commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "tests/harness/trend/eight_commits.h"

#include <stdio.h>
#include <string.h>

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
