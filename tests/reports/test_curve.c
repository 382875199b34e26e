/* The curve of a sweep: which value was swept, and what is drawn of each run. */
#include "tests/reports/told.h"

#include "reports/curve/curve.h"

#include <errno.h>

static struct told told[4];

/* A run of worker-killed that was given the overrides, and so many ns per step to compare with. */
static void add(struct curve *c, int i, const char *sets, const char *pace, int exit_code) {
    char from[] = "\"control\":", to[200], step[40];
    snprintf(to, sizeof(to), "\"set\":[%s],\"control\":", sets);
    snprintf(step, sizeof(step), "\"step_ns\":%s", pace);
    const struct edit edits[] = {
        {"\"seq\":1,", NULL, from, to}, {"\"control\",", NULL, "\"step_ns\":10000000", step}, {0}};
    tell(&told[i], "worker-killed", edits, "terminal", (struct report_style){0});
    told[i].verdict.exit_code = exit_code;
    curve_add(c, &told[i].run, i ? "runs/b" : "runs/a");
}

static const char *rendered(const struct curve *c, const char *name) {
    static struct buf out;
    static const struct report_style plain = {.unicode = true};
    buf_clear(&out);
    curve_report_find(name)->render(c, &plain, &out);
    return buf_str(&out);
}

static void end(struct curve *c, int n) {
    for (int i = 0; i < n; i++) {
        rounds_fini(&told[i].rounds);
        history_fini(&told[i].history);
        buf_fini(&told[i].text);
    }
    curve_fini(c);
}

static void test_the_key_that_differs_is_the_swept_one(void **state) {
    (void)state;
    struct curve c = {0};
    add(&c, 0, "\"vars.delay=30ms\",\"job.max_restarts=3\"", "20000000", 0);
    add(&c, 1, "\"vars.delay=1ms\",\"job.max_restarts=3\"", "15000000", 0);
    assert_int_equal(curve_settle(&c, NULL), 0);
    assert_string_equal(c.key, "vars.delay");
    assert_true(c.numbers && c.log); /* 1 to 30 */
    assert_string_equal(c.runs[0].value, "1ms");
    assert_int_equal((int)c.runs[0].y[CURVE_GOODPUT], 95); /* 105 of 110 ms */
    assert_int_equal((int)c.runs[1].y[CURVE_GOODPUT], 127);
    assert_int_equal((int)c.runs[0].y[CURVE_RECOVERY], 39);
    assert_int_equal((int)c.runs[0].y[CURVE_LOST_WORK], 1);
    const char *svg = rendered(&c, "svg");
    assert_non_null(strstr(svg, "<title>1ms: 95 %, seed 1</title>"));
    assert_non_null(strstr(svg, ">140%</text>")); /* the axis begins with 0 and holds all */
    assert_non_null(strstr(svg, ">0%</text>"));
    assert_non_null(strstr(svg, "vars.delay (logarithmic)"));
    end(&c, 2);
}

static void test_a_run_that_has_not_passed_is_a_sign_and_no_figure(void **state) {
    (void)state;
    struct curve c = {0};
    add(&c, 0, "\"vars.share=10%\"", "10000001", 0);
    add(&c, 1, "\"vars.share=\\\"50%\\\"\"", "10000001", 1); /* as a sweep sets it */
    add(&c, 2, "\"vars.share=90%\"", "10000001", 2);
    assert_int_equal(curve_settle(&c, NULL), 0);
    assert_false(c.log);
    const char *svg = rendered(&c, "svg");
    assert_null(strstr(svg, "<title>50%: "));
    assert_null(strstr(svg, "<title>90%: "));
    assert_non_null(strstr(svg, "text-anchor=\"middle\">\u2717</text>"));
    assert_non_null(strstr(svg, "text-anchor=\"middle\">?</text>"));
    assert_non_null(strstr(rendered(&c, "markdown"), "| 50% | 1 | failed | - | - | - |\n"));
    assert_non_null(strstr(rendered(&c, "markdown"), "| 10% | 1 | passed | 64 % |"));
    assert_non_null(
        strstr(rendered(&c, "html"), "<a href=\"runs/b/report.html\">inconclusive</a>"));
    assert_non_null(strstr(rendered(&c, "terminal"), "over vars.share\n"));
    end(&c, 3);
}

static void test_runs_of_one_value_give_its_median(void **state) {
    (void)state;
    struct curve c = {0};
    add(&c, 0, "\"vars.share=10%\"", "10000001", 0);
    add(&c, 1, "\"vars.share=10%\"", "12000000", 0);
    add(&c, 2, "\"vars.share=10%\"", "99000000", 1); /* does not count */
    add(&c, 3, "\"vars.share=20%\"", "10000001", 0);
    assert_int_equal(curve_settle(&c, NULL), 0);
    assert_int_equal(curve_same(&c, 0), 3);
    assert_int_equal((int)curve_median(&c, 0, 3, CURVE_GOODPUT), 70); /* of 63.6 and 76.4 */
    end(&c, 4);
}

static void test_what_is_no_sweep_of_one_key_is_refused_with_the_reason(void **state) {
    (void)state;
    struct curve c = {0}, d = {0};
    struct err err = {0};
    add(&c, 0, "\"vars.share=10%\"", "10000001", 0);
    add(&c, 1, "\"vars.share=10%\"", "10000001", 0);
    assert_int_equal(curve_settle(&c, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "differ in no value that was set"));
    end(&c, 2);
    err = (struct err){0};
    add(&d, 0, "\"a=1\",\"b=1\"", "10000001", 0);
    add(&d, 1, "\"a=2\",\"b=2\"", "10000001", 0);
    assert_int_equal(curve_settle(&d, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "differ in a and in b"));
    end(&d, 2);
}

static void test_words_are_drawn_in_the_order_in_which_they_came(void **state) {
    (void)state;
    double x;
    struct curve c = {0};
    add(&c, 0, "\"launcher=torchrun\"", "10000001", 0);
    add(&c, 1, "\"launcher=rankrun\"", "10000001", 0);
    assert_int_equal(curve_settle(&c, NULL), 0);
    assert_false(c.numbers);
    assert_string_equal(c.runs[0].value, "torchrun");
    assert_true(c.runs[1].x == 1);
    end(&c, 2);
    assert_true(curve_number("1.5s", &x) && x == 1.5e9);
    assert_true(curve_number("40mbit", &x) && x == 40e6);
    assert_false(curve_number("5 apples", &x));
    assert_false(curve_number("nan", &x));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_key_that_differs_is_the_swept_one),
        cmocka_unit_test(test_a_run_that_has_not_passed_is_a_sign_and_no_figure),
        cmocka_unit_test(test_runs_of_one_value_give_its_median),
        cmocka_unit_test(test_what_is_no_sweep_of_one_key_is_refused_with_the_reason),
        cmocka_unit_test(test_words_are_drawn_in_the_order_in_which_they_came),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
