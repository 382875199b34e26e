/* Lines that somebody expects something of: which become records, and what is counted. */
#include "harness/observe/log_matcher.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const struct log_expect expected[] = {
    {.count = LOG_NEVER, .pattern = "^error"},
    {.count = LOG_SEEN, .pattern = "step (\\d+)"},
    {.count = LOG_ONCE, .pattern = "^error", .after = "kill"}, /* the same line, asked for twice */
};

static void on_record(void *arg, const struct record *r, struct event_client *from) {
    (void)arg, (void)r, (void)from;
}

struct stage {
    struct history history;
    struct rounds rounds;
    struct recorder rec;
    struct log_matcher *log_matcher;
};

static void stage_open(struct stage *s) {
    static const struct expect x = {.logs = expected, .logs_n = 3};
    assert_int_equal(history_create(&s->history, NULL, NULL), 0);
    rounds_init(&s->rounds, true);
    s->rec = (struct recorder){&s->history, &s->rounds, on_record, s};
    s->log_matcher = log_matcher_new(&s->rec, &x);
    assert_non_null(s->log_matcher);
}

static void stage_close(struct stage *s) {
    log_matcher_free(s->log_matcher);
    history_fini(&s->history);
    rounds_fini(&s->rounds);
}

static void test_what_matches_becomes_one_record_for_each_expression(void **state) {
    (void)state;
    struct stage s;
    stage_open(&s);
    log_matcher_heard(s.log_matcher, "n0", 110, "error in step 7");
    log_matcher_heard(s.log_matcher, "n0", 110, "no error");
    log_matcher_heard(s.log_matcher, "n1", 0, "step 8");
    log_matcher_end(s.log_matcher);
    static const struct {
        enum source source;
        const char *node, *pattern, *line;
        int pid;
    } rows[] = {{SOURCE_JOB, "n0", "^error", "error in step 7", 110},
                {SOURCE_JOB, "n0", "step (\\d+)", "error in step 7", 110},
                {SOURCE_LAUNCHER, "n1", "step (\\d+)", "step 8", 0}};
    assert_int_equal(s.history.n, 4);
    for (size_t i = 0; i < 3; i++) {
        const struct record *r = s.history.records[i];
        assert_true(record_is(r, "log") && r->source == rows[i].source && r->pid == rows[i].pid);
        assert_string_equal(r->node, rows[i].node);
        assert_string_equal(record_text(r, "pattern"), rows[i].pattern);
        assert_string_equal(record_text(r, "line"), rows[i].line);
        assert_string_equal(record_text(r, "from"), "output");
    }
    const struct record *lines = s.history.records[3];
    assert_true(lines->source == SOURCE_HARNESS && record_is(lines, "lines"));
    assert_int_equal(record_i64(lines, "worker_lines", -1), 2);
    assert_int_equal(record_i64(lines, "program_lines", -1), 1);
    assert_int_equal(record_get(lines, "patterns")->length, 2);
    assert_false(s.rounds.printed); /* no event was read from it */
    stage_close(&s);
}

static void test_of_a_flood_the_first_are_recorded_and_the_rest_counted(void **state) {
    (void)state;
    struct stage s;
    stage_open(&s);
    for (int i = 0; i < 10100; i++)
        log_matcher_heard(s.log_matcher, "n0", 110, "error");
    log_matcher_end(s.log_matcher);
    assert_int_equal(s.history.n, 10001);
    const struct json *first = json_first(record_get(s.history.records[10000], "patterns"));
    assert_int_equal(json_get_i64(first, "matched", -1), 10100);
    assert_int_equal(json_get_i64(first, "recorded", -1), 10000);
    stage_close(&s);
}

static void test_where_nothing_is_expected_nothing_is_heard(void **state) {
    (void)state;
    struct recorder rec = {0};
    static const struct expect none;
    assert_null(log_matcher_new(&rec, &none));
    log_matcher_heard(NULL, "n0", 0, "error");
    log_matcher_end(NULL);
    assert_null(log_matcher_free(NULL));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_matches_becomes_one_record_for_each_expression),
        cmocka_unit_test(test_of_a_flood_the_first_are_recorded_and_the_rest_counted),
        cmocka_unit_test(test_where_nothing_is_expected_nothing_is_heard),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
