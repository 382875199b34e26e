/* Files that somebody is writing, read line by line: the test writes, the loop runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/rand.h"
#include "base/sys/clock.h"
#include "harness/observe/lines.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t DEADLINE_NS = 30000000000;

struct stage {
    struct loop *loop;
    struct lines *lines;
    struct lines_file *file;
    struct loop_source *deadline;
    char path[256];
    int fd;
    struct buf got; /* each line in <> */
    const char *wanted;
    size_t longest, count;
};

static void on_line(void *arg, void *who, const char *line) {
    struct stage *s = arg;
    assert_ptr_equal(who, s);
    s->count++;
    s->longest = strlen(line) > s->longest ? strlen(line) : s->longest;
    if (s->got.len < 100000)
        buf_printf(&s->got, "<%s>", line);
    if (s->wanted && strstr(line, s->wanted))
        loop_stop(s->loop);
}

static void on_deadline(void *arg, int64_t now) {
    (void)now;
    struct stage *s = arg;
    fail_msg("\"%s\" never came; got %.500s", s->wanted, buf_str(&s->got));
}

static struct stage *stage_new(void) {
    struct stage *s = calloc(1, sizeof(*s));
    const char *dir = getenv("TMPDIR");
    struct err err = {0};
    snprintf(s->path, sizeof(s->path), "%s/lines-XXXXXX", dir ? dir : "/tmp");
    s->fd = mkstemp(s->path);
    assert_true(s->fd >= 0);
    fcntl(s->fd, F_SETFL, O_APPEND);
    s->loop = loop_new(&err);
    s->deadline = loop_timer(s->loop, on_deadline, s);
    s->lines = lines_new(s->loop, on_line, s, &err);
    assert_non_null(s->lines);
    s->file = lines_follow(s->lines, open(s->path, O_RDWR | O_CLOEXEC), s, &err);
    assert_non_null(s->file);
    return s;
}

static void stage_free(struct stage *s) {
    lines_free(s->lines);
    loop_source_free(s->deadline);
    loop_free(s->loop);
    close(s->fd);
    unlink(s->path);
    buf_fini(&s->got);
    free(s);
}

static void put_bytes(struct stage *s, const void *bytes, size_t n) {
    assert_int_equal(write(s->fd, bytes, n), n);
}

static void put(struct stage *s, const char *text) {
    put_bytes(s, text, strlen(text));
}

/* Runs the loop until a line with this in it has come. */
static void await(struct stage *s, const char *wanted) {
    struct err err = {0};
    s->wanted = wanted;
    loop_timer_at(s->deadline, clock_monotonic_ns() + DEADLINE_NS);
    assert_int_equal(loop_run(s->loop, &err), 0);
    loop_timer_off(s->deadline);
    s->wanted = NULL;
}

static void stop(void *arg, int64_t now) {
    (void)now;
    loop_stop(arg);
}

static void test_lines_come_whole_however_they_are_written(void **state) {
    (void)state;
    struct stage *s = stage_new();
    put(s, "before\nha");
    await(s, "before");
    put(s, "lf\n\n\r\nlast\n");
    await(s, "last");
    assert_string_equal(buf_str(&s->got), "<before><half><last>");
    stage_free(s);
}

static void test_a_bar_that_stands_still_is_a_line_and_comes_once(void **state) {
    (void)state;
    struct stage *s = stage_new();
    put(s, "\r 0/3");
    await(s, "0/3");
    put(s, "\r 1/3");
    await(s, "1/3");
    put(s, "\r 2/3\r 3/3\nend\n");
    await(s, "end");
    assert_string_equal(buf_str(&s->got), "< 0/3>< 1/3>< 2/3>< 3/3><end>");
    stage_free(s);
}

static void test_what_has_no_end_yet_is_no_line_until_its_writer_has_ended(void **state) {
    (void)state;
    struct stage *s = stage_new();
    put(s, "one\ntwo");
    await(s, "one");
    assert_string_equal(buf_str(&s->got), "<one>");
    lines_drain(s->file);
    assert_string_equal(buf_str(&s->got), "<one><two>");
    lines_drain(s->file);
    assert_string_equal(buf_str(&s->got), "<one><two>");
    stage_free(s);
}

static void test_colours_and_control_bytes_are_no_part_of_a_line(void **state) {
    (void)state;
    struct stage *s = stage_new();
    static const char bytes[] = "\033[1;32mstep\033[0m 1\0x\x7f\t\033(B\xff\xfe\n\033[31\nend\n";
    put_bytes(s, bytes, sizeof(bytes) - 1);
    await(s, "end");
    assert_string_equal(buf_str(&s->got), "<step 1 x  B\xff\xfe><end>");
    stage_free(s);
}

static void test_of_a_line_of_ten_megabytes_the_beginning_is_told(void **state) {
    (void)state;
    struct stage *s = stage_new();
    char *block = malloc(1 << 20);
    memset(block, 'x', 1 << 20);
    for (int i = 0; i < 10; i++)
        put_bytes(s, block, 1 << 20);
    put(s, "\nend\n");
    await(s, "end");
    struct lines_count c = lines_counted(s->file);
    assert_true(s->longest <= LINE_LENGTH_MAX);
    assert_true(c.cut_lines + (c.skipped_bytes > 0) >= 1);
    free(block);
    stage_free(s);
}

/* More than anybody reads: the newest comes, the rest is counted, and the loop is not held up. */
static void test_of_a_flood_the_newest_is_read_and_the_rest_counted(void **state) {
    (void)state;
    struct stage *s = stage_new();
    char block[64 * 1000];
    for (size_t i = 0; i < sizeof(block); i += 64)
        memcpy(block + i, "a line of a flood, of sixty-four bytes with its end; number 0000\n" + 1,
               64);
    for (int i = 0; i < 500; i++)
        put_bytes(s, block, sizeof(block));
    put(s, "the last line\n");
    await(s, "the last line");
    struct lines_count c = lines_counted(s->file);
    assert_true(c.skipped_bytes > 20000000);
    assert_true(c.lines >= 1000);
    assert_true(c.lines * 64 + c.skipped_bytes <= 500 * sizeof(block) + 64);
    stage_free(s);
}

static void test_a_file_that_was_emptied_is_read_from_its_beginning(void **state) {
    (void)state;
    struct stage *s = stage_new();
    put(s, "one line and another\nhalf a");
    await(s, "another");
    assert_int_equal(ftruncate(s->fd, 0), 0);
    put(s, "anew\n");
    await(s, "anew");
    assert_non_null(strstr(buf_str(&s->got), "<anew>"));
    stage_free(s);
}

static void test_what_a_writer_skips_reads_as_blanks(void **state) {
    (void)state;
    struct stage *s = stage_new();
    fcntl(s->fd, F_SETFL, 0);
    assert_int_equal(pwrite(s->fd, "end\n", 4, 1000), 4);
    await(s, "end");
    assert_int_equal(s->count, 1);
    stage_free(s);
}

static void test_a_file_that_was_closed_is_read_no_further(void **state) {
    (void)state;
    struct stage *s = stage_new();
    put(s, "one\n");
    await(s, "one");
    lines_close(s->file);
    lines_close(s->file);
    put(s, "two\n");
    lines_drain(s->file);
    assert_string_equal(buf_str(&s->got), "<one>");
    assert_int_equal(lines_counted(s->file).lines, 1);
    stage_free(s);
}

static void test_the_same_lines_come_in_whatever_pieces_they_are_written(void **state) {
    (void)state;
    static const char letters[] = "ab \033[1m\n\n\xff\x01;";
    struct rand r;
    rand_init(&r, 3);
    char text[4000];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = letters[rand_below(&r, sizeof(letters) - 1)];
    struct stage *whole = stage_new(), *pieces = stage_new();
    put_bytes(whole, text, sizeof(text));
    put(whole, "\nlast\n");
    await(whole, "last");
    for (size_t at = 0, n; at < sizeof(text); at += n) {
        n = 1 + rand_below(&r, 40);
        n = n < sizeof(text) - at ? n : sizeof(text) - at;
        put_bytes(pieces, text + at, n);
        struct err err = {0};
        loop_timer_at(pieces->deadline, clock_monotonic_ns() + DEADLINE_NS);
        if (rand_below(&r, 4) == 0) {
            struct loop_source *soon = loop_timer(pieces->loop, stop, pieces->loop);
            loop_timer_at(soon, clock_monotonic_ns());
            assert_int_equal(loop_run(pieces->loop, &err), 0);
            loop_source_free(soon);
        }
    }
    put(pieces, "\nlast\n");
    await(pieces, "last");
    assert_string_equal(buf_str(&pieces->got), buf_str(&whole->got));
    stage_free(whole);
    stage_free(pieces);
}

static void test_a_file_that_is_not_open_is_not_followed(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct err err = {0};
    assert_null(lines_follow(s->lines, -1, s, &err));
    assert_non_null(strstr(err.msg, "follow the output"));
    stage_free(s);
}

/* Where there is no /proc nothing is watched, and the descriptor was taken all the same. */
static void test_what_cannot_be_watched_is_closed(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct err err = {0};
    char dir[] = "/tmp/lines-XXXXXX";
    int status, fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_non_null(mkdtemp(dir));
    pid_t pid = fork();
    if (pid == 0) {
        if (chroot(dir) != 0)
            _exit(77);
        _exit(lines_follow(s->lines, fd, s, &err) != NULL || fcntl(fd, F_GETFD) != -1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(fd);
    rmdir(dir);
    stage_free(s);
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_come_whole_however_they_are_written),
        cmocka_unit_test(test_a_bar_that_stands_still_is_a_line_and_comes_once),
        cmocka_unit_test(test_what_has_no_end_yet_is_no_line_until_its_writer_has_ended),
        cmocka_unit_test(test_colours_and_control_bytes_are_no_part_of_a_line),
        cmocka_unit_test(test_of_a_line_of_ten_megabytes_the_beginning_is_told),
        cmocka_unit_test(test_of_a_flood_the_newest_is_read_and_the_rest_counted),
        cmocka_unit_test(test_a_file_that_was_emptied_is_read_from_its_beginning),
        cmocka_unit_test(test_what_a_writer_skips_reads_as_blanks),
        cmocka_unit_test(test_a_file_that_was_closed_is_read_no_further),
        cmocka_unit_test(test_the_same_lines_come_in_whatever_pieces_they_are_written),
        cmocka_unit_test(test_a_file_that_is_not_open_is_not_followed),
        cmocka_unit_test(test_what_cannot_be_watched_is_closed),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
