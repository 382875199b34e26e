/* Which checks will have something to judge, said before anything is run. */
#include "tests/harness/judge/checks/planted.h"
#include "tests/harness/judge/checks/verdicts_compare.h"

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

/* What each check declares: by that others give it what it sees, and weigh what it finds. */
static void put_declared(struct buf *out) {
    static const char *const classes[] = {"invariant", "expect", "faults", "harness", "cleanup"};
    for (size_t i = 0; checks[i]; i++) {
        const struct check *c = checks[i];
        buf_printf(out, "%s: %s, needs %x, sees", c->name, classes[c->class], c->needs_events);
        for (int source = 0; source < SOURCE_N; source++)
            if (c->sources >> source & 1)
                buf_printf(out, " %s", source_name((enum source)source));
        buf_printf(out, "%s%s%s\n", c->told ? ", told" : "", c->leads ? ", leads" : "",
                   c->on_gpus ? ", on GPUs" : "");
    }
}

/* All of it, of jobs that tell everything, something, and nothing. `make verdicts` writes it anew. */
static void test_the_whole_forecast_is_the_same_word_for_word(void **state) {
    (void)state;
    static const char *const names[] = {"worker-killed", "node-powered-off", "printed-steps",
                                        "lines",         "probed",           "weights"};
    static const char *const run[] = {"bin/ranktrain", NULL}, *const other[] = {"train.sh", NULL};
    struct buf out = {0};
    put_declared(&out);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        for (int k = 0; k < 6; k++) {
            struct scenario s = planted_scenario(names[i]);
            s.job.run = k % 3 ? other : run;
            s.job.run_n = 1;
            s.observe.n = k % 3 == 2 ? 0 : s.observe.n;
            buf_printf(&out, "\nforecast of %s %d\n", names[i], k);
            checks_forecast(&s, k >= 3, &out);
        }
    for (size_t n = 0; n <= 3; n++) { /* each event that may be read from output alone */
        struct scenario s = planted_scenario("printed-steps");
        s.job.run = other;
        s.observe.v = planted_observed + (n ? n - 1 : 0);
        s.observe.n = n != 0;
        buf_printf(&out, "\nforecast of event %zu\n", n);
        checks_forecast(&s, false, &out);
    }
    struct scenario s = planted_scenario("worker-killed");
    s.job.run_n = 0;
    buf_puts(&out, "\nforecast of no command\n");
    checks_forecast(&s, false, &out);
    buf_puts(&out, "\nforecast without events\n");
    checks_without_events(&out);
    compare("forecast", &out);
    buf_fini(&out);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_ranktrain_everything_that_was_asked_for_is_judged),
        cmocka_unit_test(test_what_is_read_from_the_output_is_judged_but_for_the_shards),
        cmocka_unit_test(test_the_whole_forecast_is_the_same_word_for_word),
        cmocka_unit_test(test_no_line_is_too_long_to_read),
    };
    fill = argc == 2 && str_eq(argv[1], "--fill");
    cmocka_set_test_filter(argc > 1 && !fill ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
