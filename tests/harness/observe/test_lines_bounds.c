/* Lines at every split of what is read, and at each of their bounds: the functions of lines.c
 * themselves are called, and what is given back to the disk is only noted. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/types.h>

static int64_t given_from, given_size;
static int given_times;

static int note_given(int fd, int mode, off_t from, off_t size) {
    (void)fd, (void)mode;
    given_from = from;
    given_size = size;
    given_times++;
    return 0;
}

#define fallocate note_given
#include "harness/observe/lines.c"
#undef fallocate

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct buf got; /* each line in <> */

static void on_line(void *arg, void *who, const char *line) {
    (void)arg;
    assert_ptr_equal(who, &got);
    buf_printf(&got, "<%s>", line);
}

static struct lines owner = {.fn = on_line};

static struct lines_file fresh(void) {
    buf_clear(&got);
    return (struct lines_file){.owner = &owner, .who = &got, .fd = -1};
}

static void take_all(struct lines_file *f, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        take(f, text[i]);
}

/* ---- splits ---- */

/* A text with a bar that stands still comes as written wherever it is cut, but for what stands. */
static void test_a_line_that_ends_is_the_same_wherever_it_was_cut(void **state) {
    (void)state;
    static const char text[] =
        "one\n\ntwo\033[1;32m three\033[0m\r\nfour\x01\x7f\t!\n\033[31\nfive\n"
        "\033(six\n";
    static const char wanted[] = "<one><two three><four   !><five><six>";
    size_t n = sizeof(text) - 1;
    for (size_t i = 0; i <= n; i++)
        for (size_t k = i; k <= n; k++) {
            struct lines_file f = fresh();
            take_all(&f, text, i);
            standing(&f, false);
            take_all(&f, text + i, k - i);
            take_all(&f, text + k, n - k);
            standing(&f, true);
            assert_string_equal(buf_str(&got), wanted);
            assert_int_equal(f.count.lines, 5);
            assert_int_equal(f.count.cut_lines, 0);
        }
}

/* What stands is told once as it is, and again where it has grown. */
static void test_a_bar_is_told_as_often_as_it_stands(void **state) {
    (void)state;
    struct lines_file f = fresh();
    take_all(&f, "10%", 3);
    standing(&f, false);
    assert_string_equal(buf_str(&got), ""); /* no return came before it */
    take_all(&f, "\r20", 3);
    standing(&f, false);
    standing(&f, false);
    assert_string_equal(buf_str(&got), "<10%><20>");
    take_all(&f, "%", 1);
    standing(&f, false);
    take_all(&f, "\r", 1);
    assert_string_equal(buf_str(&got), "<10%><20><20%>");
    take_all(&f, "\n", 1);
    take_all(&f, "30%", 3);
    standing(&f, false);
    assert_string_equal(buf_str(&got), "<10%><20><20%>"); /* the line feed ended that */
    standing(&f, true);
    standing(&f, true);
    assert_string_equal(buf_str(&got), "<10%><20><20%><30%>");
    assert_int_equal(f.count.lines, 4);
}

/* ---- bounds ---- */

static void test_a_line_is_cut_behind_its_last_byte_that_has_room(void **state) {
    (void)state;
    for (int more = -1; more <= 2; more++) {
        struct lines_file f = fresh();
        for (int i = 0; i < LINE_LENGTH_MAX + more; i++)
            take(&f, 'x');
        take(&f, '\n');
        size_t len = (size_t)(LINE_LENGTH_MAX + (more < 0 ? more : 0));
        assert_int_equal(got.len, len + 2);
        assert_int_equal(f.count.cut_lines, more > 0);
        assert_int_equal(f.count.lines, 1);
        take_all(&f, "next\n", 5);
        assert_string_equal(buf_str(&got) + len + 2, "<next>");
        assert_int_equal(f.count.cut_lines, more > 0);
    }
}

static void test_a_backlog_is_skipped_when_it_is_longer_than_its_bound(void **state) {
    (void)state;
    for (int more = -1; more <= 1; more++) {
        struct lines_file f = fresh();
        take_all(&f, "half", 4);
        f.offset = 1000;
        f.cut = true;
        skip_backlog(&f, 1000 + BACKLOG_MAX + (uint64_t)more);
        assert_int_equal(f.skipping, more > 0);
        assert_int_equal(f.cut, more <= 0);
        assert_int_equal(f.len, more > 0 ? 0 : 4);
        assert_int_equal(f.offset, more > 0 ? 1000 + BACKLOG_MAX + 1 - BACKLOG_KEPT : 1000);
        assert_int_equal(f.count.skipped_bytes, more > 0 ? BACKLOG_MAX + 1 - BACKLOG_KEPT : 0);
        take_all(&f, "rest\nwhole\n", 11);
        assert_string_equal(buf_str(&got), more > 0 ? "<whole>" : "<halfrest><whole>");
    }
}

static void test_a_file_that_is_shorter_than_what_was_read_begins_anew(void **state) {
    (void)state;
    for (int size = 99; size <= 101; size++) {
        struct lines_file f = fresh();
        take_all(&f, "half", 4);
        f.offset = 100;
        f.emptied = 50;
        skip_backlog(&f, (uint64_t)size);
        assert_int_equal(f.offset, size < 100 ? 0 : 100);
        assert_int_equal(f.emptied, size < 100 ? 0 : 50);
        assert_string_equal(buf_str(&got), size < 100 ? "<half>" : "");
        assert_int_equal(f.count.skipped_bytes, 0);
    }
}

static void assert_given(uint64_t offset, uint64_t emptied, int64_t from, int64_t to) {
    struct lines_file f = fresh();
    f.offset = offset;
    f.emptied = emptied;
    given_times = 0;
    give_back(&f);
    assert_int_equal(given_times, from >= 0);
    assert_int_equal(f.emptied, from >= 0 ? (uint64_t)to : emptied);
    if (from >= 0) {
        assert_int_equal(given_from, from);
        assert_int_equal(given_from + given_size, to);
    }
}

/* The head and the tail stay; a hole is made when it is as long as the tail. */
static void test_the_middle_of_gigabytes_is_given_back_and_no_more(void **state) {
    (void)state;
    const uint64_t head = HEAD_KEPT, tail = TAIL_KEPT;
    assert_given(2 * tail - 1, 0, -1, 0);
    assert_given(2 * tail, 0, (int64_t)head, (int64_t)tail);
    assert_given(2 * tail + 1, 0, (int64_t)head, (int64_t)tail + 1);
    assert_given(3 * tail - 1, tail, -1, 0);
    assert_given(3 * tail, tail, (int64_t)tail, (int64_t)(2 * tail));
    assert_given(3 * tail + 7, tail + 7, (int64_t)tail + 7, (int64_t)(2 * tail) + 7);
}

/* ---- who follows many ---- */

static void on_end(void *arg, int64_t now) {
    (void)now;
    loop_stop(arg);
}

/* A turn that is due when all is given back comes to nobody. */
static void test_what_waits_for_its_turn_is_forgotten_at_the_end(void **state) {
    (void)state;
    struct err err = {0};
    char path[] = "/tmp/lines-bounds-XXXXXX";
    int fd = mkstemp(path);
    struct loop *loop = loop_new(&err);
    struct lines *l = lines_new(loop, on_line, NULL, &err);
    assert_true(fd >= 0 && l);
    assert_int_equal(write(fd, "one\n", 4), 4);
    assert_non_null(lines_follow(l, open(path, O_RDWR | O_CLOEXEC), &got, &err));
    buf_clear(&got);
    lines_free(l);
    struct loop_source *end = loop_timer(loop, on_end, loop);
    loop_timer_at(end, clock_monotonic_ns());
    assert_int_equal(loop_run(loop, NULL), 0);
    loop_source_free(end);
    assert_string_equal(buf_str(&got), "");
    loop_free(loop);
    close(fd);
    unlink(path);
}

static int drop_got(void **state) {
    (void)state;
    buf_fini(&got);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_that_ends_is_the_same_wherever_it_was_cut),
        cmocka_unit_test(test_a_bar_is_told_as_often_as_it_stands),
        cmocka_unit_test(test_a_line_is_cut_behind_its_last_byte_that_has_room),
        cmocka_unit_test(test_a_backlog_is_skipped_when_it_is_longer_than_its_bound),
        cmocka_unit_test(test_a_file_that_is_shorter_than_what_was_read_begins_anew),
        cmocka_unit_test(test_the_middle_of_gigabytes_is_given_back_and_no_more),
        cmocka_unit_test(test_what_waits_for_its_turn_is_forgotten_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, drop_got);
}
