/* Cases: what a text comes to, and the sentence that refuses one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/harness/judge/checks/cases.h"

#include <errno.h>
#include <string.h>

static const char two[] = "# for readers\n"
                          "\n"
                          "case one edit of each kind\n"
                          "history worker-killed\n"
                          "in \"step\":6, & \"pid\":121\n"
                          "- [6,\n"
                          "+ [5, and more\n"
                          "- ,\"loss\":1.5\n"
                          "drop job-end\n"
                          "after \"steady\"\n"
                          "{\"t\":1,\"source\":\"job\",\"kind\":\"other\"}\n"
                          "{\"t\":2,\"source\":\"job\",\"kind\":\"other\"}\n"
                          "fail shard 5: counted twice & more\n"
                          "case another\n"
                          "check model\n"
                          "under torchrun\n"
                          "history node-powered-off\n"
                          "drop x & y\n"
                          "exit 2\n"
                          "unknown nobody knows\n";

static void assert_edit(const struct edit *e, const char *line, const char *also, const char *from,
                        const char *to, const char *place) {
    const char *is[] = {e->line, e->also, e->from, e->to, e->place};
    const char *must[] = {line, also, from, to, place};
    for (size_t i = 0; i < 5; i++)
        if (must[i])
            assert_string_equal(is[i], must[i]);
        else
            assert_null(is[i]);
}

static void test_a_case_is_its_edits_in_order_and_its_answer(void **state) {
    (void)state;
    struct cases c = {0};
    struct err err = {0};
    if (cases_parse(&c, "x.txt", "samples", two, &err) < 0)
        fail_msg("%s", err.msg);
    const struct planted_case *v = c.first;
    assert_string_equal(v->place, "x.txt:3");
    assert_string_equal(v->name, "one edit of each kind");
    assert_string_equal(v->check, "samples");
    assert_string_equal(v->history, "worker-killed");
    assert_int_equal(v->status, FINDING_FAIL);
    assert_string_equal(v->seen, "shard 5: counted twice & more");
    assert_int_equal(v->exit_code, -1);
    assert_int_equal(v->dialect, DIALECT_STRICT);
    assert_edit(&v->edits[0], "\"step\":6,", "\"pid\":121", "[6,", "[5, and more", "x.txt:6");
    assert_edit(&v->edits[1], "\"step\":6,", "\"pid\":121", ",\"loss\":1.5", "", "x.txt:8");
    assert_edit(&v->edits[2], "job-end", NULL, "", NULL, "x.txt:9");
    assert_edit(&v->edits[3], "\"steady\"", NULL, NULL,
                "{\"t\":1,\"source\":\"job\",\"kind\":\"other\"}\n"
                "{\"seq\":0,\"t\":2,\"source\":\"job\",\"kind\":\"other\"}",
                "x.txt:10");
    assert_null(v->edits[4].line);
    v = v->next;
    assert_string_equal(v->check, "model");
    assert_int_equal(v->status, FINDING_UNKNOWN);
    assert_int_equal(v->exit_code, 2);
    assert_int_equal(v->dialect, DIALECT_TORCHRUN);
    assert_edit(&v->edits[0], "x", "y", "", NULL, "x.txt:18");
    assert_null(v->next);
    cases_fini(&c);
}

#define HEAD  "case a\nhistory worker-killed\n"
#define WHOLE HEAD "drop x\nfail y\n"

static void test_what_is_no_case_is_refused_by_file_and_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *refused;
    } rows[] = {
        {"history worker-killed\n", "x.txt:1: a case begins with `case`, not with history"},
        {HEAD "change x\n", "x.txt:3: not a word of a case: change"},
        {"case a\nhistory no-such-run\n", "x.txt:2: there is no tests/histories/no-such-run.jsonl"},
        {HEAD "check no_such\n", "x.txt:3: there is no check no_such"},
        {HEAD "exit soon\n", "x.txt:3: no exit code: soon"},
        {HEAD "- x\n", "x.txt:3: `in` is missing"},
        {HEAD "in x\n+ y\n", "x.txt:4: + comes behind a line with -"},
        {HEAD "in x\n- y\n+ z\n+ z\n", "x.txt:6: + comes behind a line with -"},
        {HEAD "drop x\n{\"t\":1}\n", "x.txt:4: a record comes behind a line with `after`"},
        {HEAD "after x\n{\"t\":1\n", "x.txt:4: JSON: "},
        {HEAD "after x\nfail y\n", "x.txt:4: no record behind `after` in this case"},
        {HEAD "under etcd\n", "x.txt:3: neither torchrun, template, slurm nor legacy: etcd"},
        {"case a\ndrop x\nfail y\n", "x.txt:3: no history in this case"},
        {HEAD "drop x\nfail\n", "x.txt:4: what the check must say is missing"},
        {HEAD "drop x\ncase b\n", "x.txt:4: the case in front of it has no answer"},
        {HEAD "drop x\n", "x.txt:4: the last case has no answer"},
        {WHOLE WHOLE, "x.txt:5: a case of this name begins at x.txt:1"},
        {HEAD "in x\n- 1\n- 2\n- 3\n- 4\n- 5\n- 6\n- 7\n- 8\n- 9\n", "x.txt:12: too many edits"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct cases c = {0};
        struct err err = {0};
        assert_int_equal(cases_parse(&c, "x.txt", "samples", rows[i].text, &err), -EINVAL);
        if (strncmp(err.msg, rows[i].refused, strlen(rows[i].refused)) != 0)
            fail_msg("row %zu: %s; expected %s", i, err.msg, rows[i].refused);
        cases_fini(&c);
    }
}

static void test_a_case_of_no_check_and_a_file_that_is_not_there_are_refused(void **state) {
    (void)state;
    struct cases c = {0};
    struct err err = {0};
    assert_int_equal(cases_parse(&c, "x.txt", NULL, WHOLE, &err), -EINVAL);
    assert_string_equal(err.msg, "x.txt:4: no check in this case");
    assert_int_equal(cases_read(&c, "tests/no-such.txt", NULL, &err), -ENOENT);
    assert_non_null(strstr(err.msg, "tests/no-such.txt"));
    cases_fini(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_case_is_its_edits_in_order_and_its_answer),
        cmocka_unit_test(test_what_is_no_case_is_refused_by_file_and_line),
        cmocka_unit_test(test_a_case_of_no_check_and_a_file_that_is_not_there_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
