#include "faults/mechanism/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file as a reader of the format finds it: every block whole, its length at both ends. */
static unsigned char *file;
static size_t file_n;
static struct {
    uint32_t type;
    const unsigned char *body;
    size_t len;
} blocks[64];
static size_t blocks_n;

static uint32_t u32(const unsigned char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static void read_back(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    file_n = (size_t)st.st_size;
    file = malloc(file_n);
    assert_int_equal(read(fd, file, file_n), st.st_size);
    close(fd);
    blocks_n = 0;
    for (size_t at = 0, len; at < file_n && blocks_n < 64; at += len) {
        assert_true(at + 12 <= file_n);
        len = u32(file + at + 4);
        assert_true(len >= 12 && len % 4 == 0 && at + len <= file_n);
        assert_int_equal(u32(file + at + len - 4), len);
        blocks[blocks_n].type = u32(file + at);
        blocks[blocks_n].body = file + at + 8;
        blocks[blocks_n++].len = len - 12;
    }
}

/* The option of a block's body from `at` on. */
static const unsigned char *option(size_t block, size_t at, unsigned code, size_t *ret_n) {
    const unsigned char *p = blocks[block].body + at, *end = blocks[block].body + blocks[block].len;
    while (p + 4 <= end) {
        uint16_t head[2];
        memcpy(head, p, sizeof(head));
        if (head[0] == code && (code || !head[1])) {
            *ret_n = head[1];
            return p + 4;
        }
        p += 4 + ((head[1] + 3u) & ~3u);
    }
    return NULL;
}

static char path[64];

static struct capture *begin(int64_t most) {
    snprintf(path, sizeof(path), "/tmp/capture_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    return capture_new(fd, "n1", 1000, most);
}

static int end(void **state) {
    (void)state;
    unlink(path);
    free(file);
    file = NULL;
    return 0;
}

static void test_frames_lie_in_it_with_their_time_length_direction_and_comment(void **state) {
    unsigned char frame[3000];
    size_t n;
    (void)state;
    memset(frame, 7, sizeof(frame));
    struct capture *c = begin(1 << 20);
    capture_frame(c, 5000000000, frame, 61, true, NULL);
    capture_frame(c, 5000000001, frame, sizeof(frame), false, "fault: LOST");
    capture_free(c);
    read_back(path);
    assert_int_equal(blocks_n, 5);
    assert_int_equal(blocks[0].type, 0x0a0d0d0a);
    assert_int_equal(u32(blocks[0].body), 0x1a2b3c4d);
    assert_memory_equal(option(0, 16, 1, &n), "t of history.jsonl is", 21);
    assert_int_equal(blocks[1].type, 1);
    assert_int_equal(u32(blocks[1].body), 1); /* Ethernet */
    assert_memory_equal(option(1, 8, 2, &n), "n1", 2);
    assert_int_equal(*option(1, 8, 9, &n), 9);
    assert_int_equal(blocks[2].type, 6);
    assert_int_equal(((uint64_t)u32(blocks[2].body + 4) << 32) + u32(blocks[2].body + 8),
                     5000001000);
    assert_int_equal(u32(blocks[2].body + 12), 61);
    assert_int_equal(u32(blocks[2].body + 16), 61);
    assert_memory_equal(blocks[2].body + 20, frame, 61);
    assert_int_equal(u32(option(2, 20 + 64, 2, &n)), 1);
    assert_null(option(2, 20 + 64, 1, &n));
    assert_int_equal(u32(blocks[3].body + 12), CAPTURE_SNAP);
    assert_int_equal(u32(blocks[3].body + 16), sizeof(frame));
    assert_memory_equal(option(3, 20 + CAPTURE_SNAP, 1, &n), "fault: LOST", 11);
    assert_int_equal(n, 11);
    assert_int_equal(u32(option(3, 20 + CAPTURE_SNAP, 2, &n)), 2);
    assert_int_equal(blocks[4].type, 5);
}

static void test_it_does_not_grow_beyond_its_bound_and_says_what_is_left_out(void **state) {
    unsigned char frame[1000] = {0};
    size_t n;
    (void)state;
    struct capture *c = begin(10000);
    for (int i = 0; i < 20; i++)
        capture_frame(c, i, frame, sizeof(frame), true, NULL);
    capture_free(c);
    read_back(path);
    size_t frames = blocks_n - 3;
    assert_true(file_n <= 10000 && frames >= 7 && frames < 20);
    uint64_t left_out;
    memcpy(&left_out, option(blocks_n - 1, 12, 5, &n), sizeof(left_out));
    assert_int_equal(left_out, 20 - frames);
    assert_non_null(option(blocks_n - 1, 12, 1, &n));
}

static void test_what_was_flushed_can_be_read_before_the_end(void **state) {
    unsigned char frame[60] = {0};
    (void)state;
    struct capture *c = begin(1 << 20);
    capture_frame(c, 1, frame, sizeof(frame), true, NULL);
    capture_flush(c);
    read_back(path);
    assert_int_equal(blocks_n, 3);
    capture_free(c);
}

int main(void) {
#define T(test) cmocka_unit_test_teardown(test, end)
    const struct CMUnitTest tests[] = {
        T(test_frames_lie_in_it_with_their_time_length_direction_and_comment),
        T(test_it_does_not_grow_beyond_its_bound_and_says_what_is_left_out),
        T(test_what_was_flushed_can_be_read_before_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
