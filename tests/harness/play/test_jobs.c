/* Which runs must be alone under --jobs, and what a deadline makes of those that run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/play/jobs.h"
#include "tests/harness/scenario/scratch.h"

#include <stdio.h>
#include <string.h>

static const char *self;

static bool alone(const char *more) {
    struct scratch x;
    struct buf text = {0};
    buf_printf(&text, "job: {run: [ls]}\n%s", more);
    scratch_load(&x, buf_str(&text));
    assert_non_null(x.s);
    bool must = job_must_be_alone(x.s);
    scratch_drop(&x);
    buf_fini(&text);
    return must;
}

static void test_where_times_are_judged_or_given_a_run_is_alone(void **state) {
    (void)state;
    assert_true(alone("timeline: [{when: {time: 2s}, fault: worker-kill, on: workers}]\n"));
    assert_true(
        alone("timeline: [{when: {step: 2, plus: 1s}, fault: worker-kill, on: workers}]\n"));
    assert_true(alone("timeline: [{id: a, when: {step: 2}, fault: worker-kill, on: workers}]\n"
                      "expect: {detect_within: {a: 2s}}\n"));
    assert_true(alone("timeline: [{when: {step: 2}, fault: worker-kill, on: workers}]\n"
                      "expect: {recover_within: 5s}\n"));
}

static void test_other_runs_go_side_by_side(void **state) {
    (void)state;
    assert_false(alone(""));
    assert_false(alone("timeline: [{when: {step: 2}, fault: worker-kill, on: workers}]\n"
                       "expect: {outcome: succeeded, restarts: 1}\n"
                       "limits: {total: 10s}\n"));
}

static void test_what_takes_longest_is_started_first(void **state) {
    (void)state;
    char command[512], line[200] = "";
    snprintf(command, sizeof(command), "%.*sspawn_jobs order", (int)(strrchr(self, '/') + 1 - self),
             self);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    assert_non_null(fgets(line, sizeof(line), out));
    assert_int_equal(pclose(out), 0);
    assert_string_equal(line, "long short as-short unknown alone ");
}

static void test_a_deadline_ends_what_runs_and_keeps_what_has_ended(void **state) {
    (void)state;
    char command[512], line[200] = "";
    snprintf(command, sizeof(command), "%.*sspawn_jobs", (int)(strrchr(self, '/') + 1 - self),
             self);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    assert_non_null(fgets(line, sizeof(line), out));
    assert_int_equal(pclose(out), 0);
    assert_string_equal(line, "7 in time, 130 late, not started\n");
}

int main(int argc, char **argv) {
    (void)argc;
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_times_are_judged_or_given_a_run_is_alone),
        cmocka_unit_test(test_other_runs_go_side_by_side),
        cmocka_unit_test(test_what_takes_longest_is_started_first),
        cmocka_unit_test(test_a_deadline_ends_what_runs_and_keeps_what_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
