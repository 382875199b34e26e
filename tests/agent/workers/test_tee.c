/* The console is a pipe here: what it was given is read when the tee has ended. */
#include "agent/workers/tee.h"

#include "base/buf.h"
#include "base/sys/file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define SECOND_NS INT64_C(1000000000)

static char dir[64], path[128], other[128], filtered[128];
static int console[2];
static struct tee *t;

static int set_up(void **state) {
    struct err err = {0};
    (void)state;
    strcpy(dir, "/tmp/test_tee_XXXXXX");
    if (file_make_temp_dir(dir, &err) < 0 || pipe(console) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/stdout.log", dir);
    snprintf(other, sizeof(other), "%s/other.log", dir);
    snprintf(filtered, sizeof(filtered), "%s/filtered.log", dir);
    t = tee_new(&err);
    return t ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    if (console[0] >= 0)
        close(console[0]);
    file_remove_tree(dir, NULL);
    return 0;
}

static void follow(const char *file, const char *header, const char *const *needles) {
    struct err err = {0};
    struct tee_stream s = {.path = file,
                           .fd = console[1],
                           .header = header,
                           .needles = needles,
                           .filtered_path = filtered};
    if (tee_follow(t, &s, &err) < 0)
        fail_msg("%s", err.msg);
}

static void add(const char *file, const char *text) {
    FILE *f = fopen(file, "a");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void shown(const char *text) {
    char got[8192] = "";
    assert_true(tee_free(t, 20 * SECOND_NS));
    close(console[1]);
    ssize_t n = read(console[0], got, sizeof(got) - 1);
    assert_true(n >= 0);
    assert_string_equal(got, text);
}

/* Until so many bytes have come to the console. */
static void read_exactly(const char *text) {
    char got[256] = "";
    size_t n = 0;
    while (n < strlen(text)) {
        ssize_t r = read(console[0], got + n, strlen(text) - n);
        assert_true(r > 0);
        n += (size_t)r;
    }
    assert_string_equal(got, text);
}

static void test_lines_come_with_their_header_while_they_are_written(void **state) {
    (void)state;
    follow(path, "[a0]:", NULL);
    add(path, "one\ntw");
    read_exactly("[a0]:one\n");
    add(path, "o\n");
    read_exactly("[a0]:two\n");
    shown("");
}

static void test_a_last_line_without_an_end_is_shown_at_the_end(void **state) {
    (void)state;
    follow(path, "", NULL);
    add(path, "one\nlast");
    shown("one\nlast\n");
}

static void test_a_progress_bar_is_shown_bar_by_bar(void **state) {
    (void)state;
    follow(path, "h ", NULL);
    add(path, "10%\r20%\r");
    read_exactly("h 10%\nh 20%\n");
    add(path, "\nnext\r\nempty\n\n");
    shown("h next\nh empty\nh \n");
}

static void test_what_ended_is_shown_before_what_is_followed_next(void **state) {
    (void)state;
    follow(path, "1 ", NULL);
    add(path, "of the first round");
    tee_end(t);
    follow(other, "2 ", NULL);
    add(other, "of the second\n");
    tee_end(t);
    shown("1 of the first round\n2 of the second\n");
}

static void test_lines_with_a_needle_are_collected_too(void **state) {
    static const char *const needles[] = {"loss", "NaN", NULL};
    struct buf b = {0};
    (void)state;
    follow(path, "[x]:", needles);
    add(path, "step 1\nloss 2\nit is NaN\n");
    shown("[x]:step 1\n[x]:loss 2\n[x]:it is NaN\n");
    assert_int_equal(file_read(filtered, 1000, &b, NULL), 0);
    assert_string_equal(buf_str(&b), "loss 2\nit is NaN\n");
    buf_fini(&b);
}

static void test_a_line_without_an_end_does_not_grow_for_ever(void **state) {
    char *text = malloc((70 << 10) + 1);
    char *got = calloc(1, 80 << 10);
    size_t n = 0;
    ssize_t r;
    (void)state;
    assert_true(text && got);
    memset(text, 'x', 70 << 10);
    text[70 << 10] = '\0';
    fcntl(console[1], F_SETPIPE_SZ, 1 << 20);
    follow(path, "|", NULL);
    add(path, text);
    assert_true(tee_free(t, 20 * SECOND_NS));
    close(console[1]);
    while ((r = read(console[0], got + n, (80 << 10) - n)) > 0)
        n += (size_t)r;
    assert_int_equal(n, (70 << 10) + 4); /* two pieces: a header and an end each */
    assert_int_equal(got[(64 << 10) + 1], '\n');
    free(text);
    free(got);
}

static void test_a_console_that_takes_nothing_is_left_alone(void **state) {
    static const char *const needles[] = {"no such", NULL};
    static char line[4096], byte;
    (void)state;
    assert_int_equal(mkfifo(filtered, 0600), 0); /* ends when the thread gives it back */
    int end = open(filtered, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    memset(line, 'y', sizeof(line) - 2);
    line[sizeof(line) - 2] = '\n';
    follow(path, "", needles);
    for (int i = 0; i < 64; i++) /* four times what a pipe holds */
        add(path, line);
    assert_false(tee_free(t, SECOND_NS / 10));
    close(console[0]); /* wakes the thread, which ends */
    fcntl(end, F_SETFL, 0);
    assert_int_equal(read(end, &byte, 1), 0);
    close(end);
    close(console[1]);
    console[0] = -1;
}

static void test_a_file_that_cannot_be_made_is_named(void **state) {
    struct err err = {0};
    struct tee_stream s = {.path = "/nonexistent/stdout.log", .fd = 1, .header = ""};
    (void)state;
    assert_true(tee_follow(t, &s, &err) < 0);
    assert_non_null(strstr(err.msg, "/nonexistent/stdout.log"));
    shown("");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST(test_a_console_that_takes_nothing_is_left_alone), /* first: its thread ends late */
        TEST(test_lines_come_with_their_header_while_they_are_written),
        TEST(test_a_last_line_without_an_end_is_shown_at_the_end),
        TEST(test_a_progress_bar_is_shown_bar_by_bar),
        TEST(test_what_ended_is_shown_before_what_is_followed_next),
        TEST(test_lines_with_a_needle_are_collected_too),
        TEST(test_a_line_without_an_end_does_not_grow_for_ever),
        TEST(test_a_file_that_cannot_be_made_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
