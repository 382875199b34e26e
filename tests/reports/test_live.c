/* Live: what is shown while a run goes on, on a terminal and elsewhere. */
#include "tests/harness/judge/checks/planted.h"

#include "reports/live.h"

static void show(struct report_style style, const char *history, char **ret, size_t *ret_len) {
    static const struct edit none[1];
    struct history h;
    planted_load(&h, history, none);
    FILE *out = open_memstream(ret, ret_len);
    struct live *l = live_new(out, &style, "tour", 8);
    history_each(r, &h) live_record(l, r);
    assert_null(live_end(l));
    fclose(out);
    history_fini(&h);
}

static void test_without_a_terminal_there_are_plain_lines(void **state) {
    (void)state;
    char *text;
    size_t len;
    show((struct report_style){0}, "node-powered-off", &text, &len);
    assert_string_equal(text, "   0.020 s  round 1: 3 workers\n"
                              "   0.091 s  dark: node-poweroff on n2\n"
                              "   0.930 s  round 2: 2 workers\n"
                              "   0.955 s  round 2 resumes from step 4\n");
    free(text);
}

static void test_on_a_terminal_the_status_line_fits_and_is_gone_at_the_end(void **state) {
    (void)state;
    for (int width = 20; width < 120; width += 20) {
        char *text;
        size_t len;
        show((struct report_style){.width = width}, "node-powered-off", &text, &len);
        assert_non_null(strstr(text, "tour"));
        assert_true(str_ends(text, "\r\033[K"));
        for (const char *at = text; *at;) {
            size_t n = strcspn(at, "\r\n");
            if (n > (size_t)width + strlen("\033[K"))
                fail_msg("wider than %d: %.*s", width, (int)n, at);
            at += n + (at[n] != 0);
        }
        free(text);
    }
}

static void show_quiet(bool brief, char **ret) {
    struct history h;
    struct err err;
    size_t len;
    assert_int_equal(history_create(&h, NULL, &err), 0);
    FILE *out = open_memstream(ret, &len);
    struct live *l = live_new(out, &(struct report_style){0}, "node-killed", 0);
    if (brief)
        live_be_brief(l);
    struct json_writer *w = history_begin(&h, INT64_C(1000000000), SOURCE_HARNESS, "steady");
    live_record(l, history_end(&h));
    w = history_begin(&h, INT64_C(61000000000), SOURCE_HARNESS, "quiet");
    json_put_i64(w, "ns", INT64_C(60000000000));
    json_put_string(w, "limit", "total");
    json_put_i64(w, "left_ns", INT64_C(529000000000));
    live_record(l, history_end(&h));
    live_end(l);
    fclose(out);
    history_fini(&h);
}

static void test_a_run_that_stands_still_says_how_long_that_may_last(void **state) {
    (void)state;
    char *text;
    show_quiet(false, &text);
    assert_string_equal(
        text, "  60.000 s  nothing has happened for 60 s; limits.total ends the run in 529 s\n");
    free(text);
    show_quiet(true, &text); /* where only a line for each run is shown it names the run */
    assert_non_null(strstr(text, "node-killed: nothing has happened for 60 s"));
    free(text);
}

static void test_nothing_to_end_is_no_trouble(void **state) {
    (void)state;
    assert_null(live_end(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_terminal_there_are_plain_lines),
        cmocka_unit_test(test_on_a_terminal_the_status_line_fits_and_is_gone_at_the_end),
        cmocka_unit_test(test_a_run_that_stands_still_says_how_long_that_may_last),
        cmocka_unit_test(test_nothing_to_end_is_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
