/* One number out of a page of metrics, and every page that has none. */
#include "harness/observe/metric.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const char page[] = "# HELP up whether it is\n"
                           "# TYPE up gauge\n"
                           "up 1\n"
                           "rounds{job=\"a\",node=\"n0\"} 3 1395066363000\n"
                           "rounds { node = \"n0\" , job = \"b\" , } 4.5e0\r\n"
                           "rounds_total{job=\"a\"} 7\n"
                           "odd{path=\"C:\\\\DIR\\\\\",say=\"a \\\"b\\\" } 9\"} -2\n"
                           "idle NaN\n"
                           "top +Inf\n"
                           "none\n"
                           "bad 12x\n"
                           "torn{job=\"a\n"
                           "last 5";

static void test_the_one_series_that_is_meant_is_found(void **state) {
    (void)state;
    static const struct {
        const char *wanted, *value;
    } rows[] = {
        {"up", "1"},
        {" up ", "1"},
        {"rounds{job=\"a\"}", "3"},
        {"rounds{node=\"n0\", job=\"b\"}", "4.5e0"},
        {"rounds_total", "7"},
        {"odd{say=\"a \\\"b\\\" } 9\"}", "-2"},
        {"odd{path=\"C:\\\\DIR\\\\\"}", "-2"},
        {"top", "+Inf"},
        {"last", "5"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char value[64] = "";
        struct err err = {0};
        if (metric_read(page, rows[i].wanted, value, &err) != 0 || strcmp(value, rows[i].value))
            fail_msg("%s: \"%s\" %s", rows[i].wanted, value, err.msg);
    }
}

static void test_what_is_no_number_says_why(void **state) {
    (void)state;
    static const struct {
        const char *page, *wanted, *message;
        int code;
    } rows[] = {
        {page, "down", "the page has no metric down", -ENOENT},
        {page, "rounds{job=\"c\"}", "2 series of that name, and none is", -ENOENT},
        {page, "rounds", "2 series of the page are rounds; name more of its labels", -ENOTUNIQ},
        {page, "idle", "idle is \"NaN\", which is not a number", -EDOM},
        {page, "none", "none is \"\", which is not a number", -EDOM},
        {page, "bad", "bad is \"12x\"", -EDOM},
        {page, "torn", "no metric torn", -ENOENT},
        {page, "9up", "is no metric", -EINVAL},
        {page, "", "is no metric", -EINVAL},
        {page, "up{job}", "is no metric", -EINVAL},
        {page, "up{job=\"a\"} 3", "is no metric", -EINVAL},
        {"", "up", "the page has no metric up", -ENOENT},
        {"<html>up</html>", "up", "the page has no metric up", -ENOENT},
        {"up{a=\"", "up", "the page has no metric up", -ENOENT},
        {"up{", "up", "the page has no metric up", -ENOENT},
        {"up{a=\"\\", "up", "the page has no metric up", -ENOENT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char value[64];
        struct err err = {0};
        int code = metric_read(rows[i].page, rows[i].wanted, value, &err);
        if (code != rows[i].code || !strstr(err.msg, rows[i].message))
            fail_msg("%s: %d, \"%s\"", rows[i].wanted, code, err.msg);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_one_series_that_is_meant_is_found),
        cmocka_unit_test(test_what_is_no_number_says_why),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
