/* Which checks will have something to judge, said before anything is run. */
#include "tests/harness/judge/checks/planted.h"

#include "harness/judge/checks/check.h"

/* The part of the forecast that begins with this title. */
static const char *part(const struct buf *out, const char *title) {
    const char *at = strstr(buf_str(out), title);
    assert_non_null(at);
    return at;
}

static void assert_not_judged(const struct buf *out, const char *check, const char *why) {
    const char *at = strstr(part(out, "\nnot judged\n"), check);
    if (!at || !strstr(at, why) || strchr(at, '\n') < strstr(at, why))
        fail_msg("%s is not said to be idle (%s):\n%s", check, why, buf_str(out));
}

static void assert_judged(const struct buf *out, const char *check) {
    const char *at = strstr(part(out, "\njudged\n"), check), *end = strstr(buf_str(out), "\nnot");
    if (!at || (end && at > end))
        fail_msg("%s is not said to be judged:\n%s", check, buf_str(out));
}

static void test_of_ranktrain_everything_that_was_asked_for_is_judged(void **state) {
    (void)state;
    struct scenario s = planted_scenario("worker-killed");
    struct buf out = {0};
    checks_forecast(&s, false, &out);
    assert_judged(&out, "samples");
    assert_judged(&out, "resume_step");
    assert_judged(&out, "model");
    assert_not_judged(&out, "observed", "sets no observe");
    s.expect.model_same = false;
    s.job.checkpoint_dir = NULL;
    buf_clear(&out);
    checks_forecast(&s, false, &out);
    assert_judged(&out, "model"); /* what it names against what it has saved */
    assert_not_judged(&out, "resume_step", "names no directory");
    buf_fini(&out);
}

static void test_what_is_read_from_the_output_is_judged_but_for_the_shards(void **state) {
    (void)state;
    static const char *const run[] = {"./train.sh", NULL};
    struct scenario s = planted_scenario("printed-steps");
    struct buf out = {0};
    s.job.run = run;
    checks_forecast(&s, false, &out);
    assert_judged(&out, "heal");
    assert_judged(&out, "lost_work");
    assert_judged(&out, "observed");
    assert_not_judged(&out, "samples", "unless the job tells the shards of its steps");
    s.observe.n = 1; /* the steps */
    buf_clear(&out);
    checks_forecast(&s, false, &out);
    assert_judged(&out, "heal");
    assert_not_judged(&out, "lost_work", "unless the job tells where it resumes");
    assert_not_judged(&out, "model", "unless the job tells its model");
    s.observe.n = 0;
    buf_clear(&out);
    checks_forecast(&s, false, &out);
    assert_not_judged(&out, "heal", "unless the job tells steps");
    buf_fini(&out);
}

static void test_no_line_is_too_long_to_read(void **state) {
    (void)state;
    struct scenario s = planted_scenario("printed-steps");
    struct buf out = {0};
    checks_forecast(&s, false, &out);
    checks_without_events(&out);
    for (const char *line = buf_str(&out); *line;
         line += strcspn(line, "\n"), line += *line == '\n')
        assert_true(strcspn(line, "\n") <= 100);
    buf_fini(&out);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_ranktrain_everything_that_was_asked_for_is_judged),
        cmocka_unit_test(test_what_is_read_from_the_output_is_judged_but_for_the_shards),
        cmocka_unit_test(test_no_line_is_too_long_to_read),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
