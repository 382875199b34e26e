#include "harness/carrier/frames.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void expect_text(struct frame_stream *f, const char *wanted) {
    const char *text;
    size_t len;
    struct err err;
    assert_int_equal(frames_take(f, &text, &len, &err), 1);
    assert_int_equal(len, strlen(wanted));
    assert_memory_equal(text, wanted, len);
}

static void expect_none(struct frame_stream *f) {
    const char *text;
    size_t len;
    struct err err;
    assert_int_equal(frames_take(f, &text, &len, &err), 0);
}

static void expect_refusal(struct frame_stream *f, const char *quoted) {
    const char *text;
    size_t len;
    struct err err;
    assert_int_equal(frames_take(f, &text, &len, &err), -EPROTO);
    assert_non_null(strstr(err.msg, quoted));
}

static void test_frames_cut_anywhere_are_the_same_messages(void **state) {
    struct buf stream = {0};
    frame_put(&stream, "{\"op\":\"beat\"}", 13);
    frame_put(&stream, "x", 1);
    for (size_t piece = 1; piece <= stream.len; piece++) {
        struct frame_stream f = {0};
        size_t came = 0, at = 0;
        const char *text;
        size_t len;
        while (at < stream.len) {
            size_t n = stream.len - at < piece ? stream.len - at : piece;
            frames_hear(&f, stream.data + at, n);
            at += n;
            while (frames_take(&f, &text, &len, NULL) == 1) {
                assert_memory_equal(text, came == 0 ? "{\"op\":\"beat\"}" : "x", len);
                assert_int_equal(len, came++ == 0 ? 13 : 1);
            }
        }
        assert_int_equal(came, 2);
        assert_int_equal(frames_left(&f), 0);
        frames_fini(&f);
    }
    buf_fini(&stream);
}

static void test_long_text_comes_whole_after_many_short_ones(void **state) {
    enum { LONG = 300000 };
    char *text = malloc(LONG + 1);
    struct buf stream = {0};
    struct frame_stream f = {0};
    memset(text, 'a', LONG);
    text[LONG] = 0;
    for (int i = 0; i < 20000; i++)
        frame_put(&stream, "short", 5);
    frame_put(&stream, text, LONG);
    frames_hear(&f, stream.data, stream.len / 2);
    for (int i = 0; i < 10000; i++)
        expect_text(&f, "short");
    frames_hear(&f, stream.data + stream.len / 2, stream.len - stream.len / 2);
    for (int i = 0; i < 10000; i++)
        expect_text(&f, "short");
    expect_text(&f, text);
    expect_none(&f);
    frames_fini(&f);
    buf_fini(&stream);
    free(text);
}

static void test_what_a_shell_prints_is_refused_and_quoted(void **state) {
    static const struct {
        const char *came, *quoted;
    } rows[] = {
        {"Welcome to node7\nLast login: today\n", "\"Welcome to node7\""},
        {"bash: rankquake-node: command not found\n", "command not found"},
        {"\nbanner\n", "banner"},
        {"\t\t\ttabs", "tabs"},
        {"\x7f"
         "ELF and more",
         "ELF"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frame_stream f = {0};
        frames_hear(&f, rows[i].came, strlen(rows[i].came));
        expect_refusal(&f, rows[i].quoted);
        frames_fini(&f);
    }
}

static void test_frame_that_is_too_long_or_empty_is_refused_by_its_head(void **state) {
    static const unsigned char too_long[] = {4, 0, 0, 1}, longest[] = {4, 0, 0, 0},
                               empty[] = {0, 0, 0, 0};
    struct frame_stream f = {0};
    frames_hear(&f, longest, sizeof(longest));
    expect_none(&f);
    frames_fini(&f);
    frames_hear(&f, too_long, 3);
    expect_none(&f);
    frames_hear(&f, too_long + 3, 1);
    expect_refusal(&f, "no message");
    frames_fini(&f);
    frames_hear(&f, empty, sizeof(empty));
    expect_refusal(&f, "no message");
    frames_fini(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_cut_anywhere_are_the_same_messages),
        cmocka_unit_test(test_long_text_comes_whole_after_many_short_ones),
        cmocka_unit_test(test_what_a_shell_prints_is_refused_and_quoted),
        cmocka_unit_test(test_frame_that_is_too_long_or_empty_is_refused_by_its_head),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
