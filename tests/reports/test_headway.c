#include "reports/headway.h"

#include "base/arena.h"
#include "base/json.h"

#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const int64_t second_ns = 1000000000;

/* ---- the line ---- */

static struct headway at(int64_t done, int64_t total, int64_t after_ns) {
    struct headway h = {.spec = {.verb = "sim", .unit = "seeds", .total = total, .wish.json = -1},
                        .done = done,
                        .left_ns = -1};
    tempo_begin(&h.tempo, 0, 0);
    tempo_note(&h.tempo, after_ns, done);
    return h;
}

static void says(const struct headway *h, int64_t after_ns, const char *note, int columns,
                 const char *expected) {
    BUF_FINI struct buf text = {0};
    headway_text(h, after_ns, note, columns, &text);
    assert_string_equal(buf_str(&text), expected);
}

static void test_it_says_share_count_rate_rest_and_a_note(void **state) {
    (void)state;
    struct headway h = at(50, 200, 25 * second_ns);
    says(&h, 25 * second_ns, "violations 0", 0,
         "25 %  50 of 200 seeds  2.0 a second  about 75 s left  violations 0");
}

static void test_slow_work_is_told_by_the_minute_and_the_hour(void **state) {
    (void)state;
    struct headway h = at(2, 6, 20 * second_ns);
    says(&h, 20 * second_ns, "", 0, "33 %  2 of 6 seeds  6.0 a minute  about 40 s left");
    h = at(2, 6, 3600 * second_ns);
    says(&h, 3600 * second_ns, "", 0, "33 %  2 of 6 seeds  2.0 an hour  about 2h 0m left");
}

static void test_where_nobody_knows_how_much_there_is_no_share_and_no_rest(void **state) {
    (void)state;
    struct headway h = at(7, 0, 7 * second_ns);
    says(&h, 7 * second_ns, NULL, 0, "7 seeds  1.0 a second");
}

static void test_who_knows_better_says_the_rest(void **state) {
    (void)state;
    struct headway h = at(1, 4, 2 * second_ns);
    headway_expect(&h, 90 * second_ns);
    says(&h, 2 * second_ns, "", 0, "25 %  1 of 4 seeds  30 a minute  about 90 s left");
}

static void test_a_budget_ends_it_before_its_rate_does(void **state) {
    (void)state;
    struct headway h = at(10, 1000, 10 * second_ns);
    h.spec.until_ns = 70 * second_ns;
    says(&h, 10 * second_ns, "", 0, "1 %  10 of 1000 seeds  1.0 a second  about 60 s left");
    h = at(3, 0, 10 * second_ns);
    h.spec.until_ns = 30 * second_ns;
    says(&h, 10 * second_ns, "", 0, "3 seeds  18 a minute  about 20 s left");
}

/* The least important goes first, and nothing is ever wider than the terminal. */
static void test_a_narrow_terminal_has_the_most_important_of_it(void **state) {
    (void)state;
    struct headway h = at(50, 200, 25 * second_ns);
    says(&h, 25 * second_ns, "violations 0", 51, "25 %  50 of 200 seeds  about 75 s left");
    says(&h, 25 * second_ns, "violations 0", 23, "25 %  about 75 s left");
    says(&h, 25 * second_ns, "violations 0", 10, "25 %");
    for (int columns = 1; columns < 100; columns++) {
        BUF_FINI struct buf text = {0};
        headway_text(&h, 25 * second_ns, "violations 0", columns, &text);
        assert_true((int)text.len <= columns);
    }
}

static void test_a_note_cannot_move_the_cursor(void **state) {
    (void)state;
    struct headway h = at(1, 2, second_ns);
    BUF_FINI struct buf text = {0};
    headway_text(&h, second_ns, "evil\033[2J\n", 0, &text);
    assert_null(strchr(buf_str(&text), '\033'));
    assert_null(strchr(buf_str(&text), '\n'));
}

/* ---- the object ---- */

static void test_the_object_has_numbers_or_null(void **state) {
    (void)state;
    struct headway h = at(0, 0, 0);
    struct err err;
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf text = {0};
    headway_object(&h, 0, NULL, false, &text);
    assert_string_equal(buf_str(&text),
                        "{\"progress\":\"sim\",\"unit\":\"seeds\",\"done\":0,\"total\":null,"
                        "\"rate\":null,\"left_s\":null,\"elapsed_s\":0,\"over\":false}");
    h = at(50, 200, 25 * second_ns);
    buf_clear(&text);
    headway_object(&h, 25 * second_ns, "a \"quoted\" note", true, &text);
    const struct json *j = json_parse(&a, text.data, text.len, &err);
    assert_non_null(j);
    assert_true(json_number(json_get(j, "rate"), 0) == 2.0);
    assert_int_equal(json_get_i64(j, "left_s", -1), 0);
    assert_true(json_get_bool(j, "over", false));
    assert_string_equal(json_get_string(j, "note", ""), "a \"quoted\" note");
}

/* ---- a real terminal ---- */

struct terminal {
    int ours;
    FILE *out;
};

static struct terminal open_terminal(unsigned short columns) {
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    int ours, theirs;
    assert_int_equal(openpty(&ours, &theirs, NULL, NULL, &size), 0);
    fcntl(ours, F_SETFL, O_NONBLOCK);
    return (struct terminal){ours, fdopen(theirs, "w")};
}

static const char *shown(struct terminal *t, struct buf *into) {
    char part[4096];
    ssize_t n;
    fflush(t->out);
    while ((n = read(t->ours, part, sizeof(part))) > 0)
        buf_put(into, part, (size_t)n);
    return buf_str(into);
}

static void close_terminal(struct terminal *t) {
    fclose(t->out);
    close(t->ours);
}

static void work(FILE *out, bool quiet) {
    struct headway h;
    headway_begin(&h, &(struct headway_spec){.out = out,
                                             .verb = "crashpoints",
                                             .unit = "states",
                                             .total = 3,
                                             .wish = {.quiet = quiet, .json = -1}});
    headway_at(&h, 1, "the first of the states that have a long name");
    headway_end(&h);
    headway_end(&h);
}

static void test_on_a_terminal_the_line_is_written_over_and_gone_at_the_end(void **state) {
    (void)state;
    struct terminal t = open_terminal(100);
    BUF_FINI struct buf said = {0};
    setenv("TERM", "xterm", 1);
    work(t.out, false);
    assert_non_null(strstr(shown(&t, &said), "33 %  1 of 3 states"));
    assert_null(strchr(buf_str(&said), '\n'));
    assert_true(said.len > 4 && strcmp(buf_str(&said) + said.len - 4, "\r\033[K") == 0);
    close_terminal(&t);
}

static void test_a_terminal_of_ten_columns_is_not_overrun(void **state) {
    (void)state;
    struct terminal t = open_terminal(10);
    BUF_FINI struct buf said = {0};
    setenv("TERM", "xterm", 1);
    work(t.out, false);
    assert_string_equal(shown(&t, &said), "33 %\r\033[K");
    close_terminal(&t);
}

static void test_a_dumb_terminal_gets_no_controls(void **state) {
    (void)state;
    static const char *const terms[] = {"dumb", ""};
    for (size_t i = 0; i < 2; i++) {
        struct terminal t = open_terminal(80);
        BUF_FINI struct buf said = {0};
        setenv("TERM", terms[i], 1);
        work(t.out, false);
        assert_string_equal(shown(&t, &said), "");
        close_terminal(&t);
    }
}

static void test_quiet_is_quiet(void **state) {
    (void)state;
    struct terminal t = open_terminal(80);
    BUF_FINI struct buf said = {0};
    setenv("TERM", "xterm", 1);
    work(t.out, true);
    assert_string_equal(shown(&t, &said), "");
    close_terminal(&t);
}

static void test_the_width_is_the_terminal_s_before_it_is_COLUMNS(void **state) {
    (void)state;
    struct terminal t = open_terminal(33), unsaid = open_terminal(0);
    setenv("COLUMNS", "44", 1);
    assert_int_equal(headway_columns(t.out), 33);
    assert_int_equal(headway_columns(unsaid.out), 44);
    setenv("COLUMNS", "wide", 1);
    assert_int_equal(headway_columns(unsaid.out), 80);
    unsetenv("COLUMNS");
    close_terminal(&t);
    close_terminal(&unsaid);
}

/* ---- elsewhere ---- */

static void test_lines_come_every_ten_seconds_at_first_and_then_every_minute(void **state) {
    (void)state;
    int64_t after_ns = 0;
    static const int64_t due_s[] = {10, 20, 30, 40, 50, 60, 120, 180};
    for (size_t i = 0; i < sizeof(due_s) / sizeof(*due_s); i++) {
        after_ns = headway_due_ns(after_ns);
        assert_int_equal(after_ns, due_s[i] * second_ns);
    }
    assert_int_equal(headway_due_ns(37 * second_ns), 40 * second_ns);
    assert_int_equal(headway_due_ns(150 * second_ns), 180 * second_ns);
}

/* The work goes on, whoever looks on and does not read. */
static void test_a_reader_that_does_not_read_holds_nobody_up(void **state) {
    (void)state;
    int ends[2];
    struct headway h;
    assert_int_equal(pipe(ends), 0);
    FILE *null = fopen("/dev/null", "w");
    headway_begin(&h, &(struct headway_spec){
                          .out = null, .verb = "sim", .unit = "seeds", .wish.json = ends[1]});
    for (int i = 0; i < 100000; i++) {
        h.json_ns = -1;
        headway_at(&h, i, "");
    }
    headway_end(&h);
    fclose(null);
    close(ends[0]);
    close(ends[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_says_share_count_rate_rest_and_a_note),
        cmocka_unit_test(test_slow_work_is_told_by_the_minute_and_the_hour),
        cmocka_unit_test(test_where_nobody_knows_how_much_there_is_no_share_and_no_rest),
        cmocka_unit_test(test_who_knows_better_says_the_rest),
        cmocka_unit_test(test_a_budget_ends_it_before_its_rate_does),
        cmocka_unit_test(test_a_narrow_terminal_has_the_most_important_of_it),
        cmocka_unit_test(test_a_note_cannot_move_the_cursor),
        cmocka_unit_test(test_the_object_has_numbers_or_null),
        cmocka_unit_test(test_on_a_terminal_the_line_is_written_over_and_gone_at_the_end),
        cmocka_unit_test(test_a_terminal_of_ten_columns_is_not_overrun),
        cmocka_unit_test(test_a_dumb_terminal_gets_no_controls),
        cmocka_unit_test(test_quiet_is_quiet),
        cmocka_unit_test(test_the_width_is_the_terminal_s_before_it_is_COLUMNS),
        cmocka_unit_test(test_lines_come_every_ten_seconds_at_first_and_then_every_minute),
        cmocka_unit_test(test_a_reader_that_does_not_read_holds_nobody_up),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
