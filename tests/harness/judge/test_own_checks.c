/* What a program of the user's own may answer, and what is taken for no answer. */
#include "harness/judge/own_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static void make_history(struct history *h, int records) {
    assert_int_equal(history_create(h, NULL, NULL), 0);
    for (int i = 0; i < records; i++) {
        history_begin(h, i, SOURCE_KERNEL, "x");
        history_end(h);
    }
}

static int take(const char *text, struct finding *f, struct err *err) {
    struct history h;
    make_history(&h, 5);
    *f = (struct finding){.check = "own:x", .class = CLASS_EXPECT, .status = FINDING_UNKNOWN};
    int r = own_check_read(f, &h, text, strlen(text), err);
    history_fini(&h);
    return r;
}

static void test_an_answer_is_taken_with_its_evidence(void **state) {
    (void)state;
    struct finding f;
    assert_int_equal(take("{\"status\":\"fail\",\"seen\":\"two\",\"expected\":\"one\",\"evidence\":"
                          "[2,5],\"more\":1}\n",
                          &f, NULL),
                     0);
    assert_int_equal(f.status, FINDING_FAIL);
    assert_string_equal(f.check, "own:x");
    assert_string_equal(f.seen, "two");
    assert_string_equal(f.expected, "one");
    assert_true(f.evidence[0] == 2 && f.evidence[1] == 5 && !f.evidence[2]);
    assert_int_equal(take("{\"status\":\"pass\"}", &f, NULL), 0);
    assert_int_equal(f.status, FINDING_PASS);
    assert_true(*f.seen);
}

static void test_what_is_no_answer_leaves_it_open(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "one JSON object"},
        {"pass", "one JSON object"},
        {"[\"pass\"]", "one JSON object"},
        {"{\"status\":\"pass\"}{", "one JSON object"},
        {"{}", "must say once"},
        {"{\"status\":true}", "must say once"},
        {"{\"status\":\"PASS\"}", "must say once"},
        {"{\"status\":\"fail\",\"status\":\"pass\"}", "must say once"},
        {"{\"status\":\"pass\",\"evidence\":7}", "must be a list"},
        {"{\"status\":\"pass\",\"evidence\":[0]}", "does not have"},
        {"{\"status\":\"pass\",\"evidence\":[6]}", "does not have"},
        {"{\"status\":\"pass\",\"evidence\":[\"2\"]}", "does not have"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct finding f;
        struct err err = {0};
        assert_true(take(rows[i].text, &f, &err) < 0);
        assert_int_equal(f.status, FINDING_UNKNOWN);
        if (!strstr(err.msg, rows[i].message))
            fail_msg("%s: expected \"%s\" in \"%s\"", rows[i].text, rows[i].message, err.msg);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_is_taken_with_its_evidence),
        cmocka_unit_test(test_what_is_no_answer_leaves_it_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
