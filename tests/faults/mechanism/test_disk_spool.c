#include "faults/mechanism/disk_spool.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct disk_spool *spool_to(int bytes, int lines) {
    struct disk_spool *s = NULL;
    struct err err;
    assert_int_equal(disk_spool_new(&s, bytes, lines, &err), 0);
    return s;
}

static int memory_file(void) {
    int fd = memfd_create("spool", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void assert_byte(int fd, off_t at, unsigned char wanted) {
    unsigned char got;
    assert_int_equal(pread(fd, &got, 1, at), 1);
    assert_int_equal(got, wanted);
}

static void test_more_than_is_ever_held_arrives_whole_and_in_order(void **state) {
    enum { PIECE = DISK_SPOOL_PART / 4 * 3, PIECES = 20 }; /* no two of them in a part */
    FILE_CLOSE int bytes = memory_file();
    FILE_CLOSE int lines = memory_file();
    struct disk_spool *s = spool_to(bytes, lines);
    BUF_FINI struct buf line = {0};
    char got[PIECES + 1] = "";
    (void)state;
    for (int i = 0; i < PIECES; i++) {
        unsigned char *at = disk_spool_room(s, PIECE);
        memset(at, 'a' + i, PIECE);
        disk_spool_put(s, at, PIECE);
        buf_clear(&line);
        buf_putc(&line, (char)('A' + i));
        disk_spool_line(s, &line);
    }
    assert_int_equal(disk_spool_drain(s), 0);
    assert_false(disk_spool_holds(s));
    assert_int_equal(lseek(bytes, 0, SEEK_END), (off_t)PIECE * PIECES);
    for (int i = 0; i < PIECES; i++) {
        assert_byte(bytes, (off_t)PIECE * i, (unsigned char)('a' + i));
        assert_byte(bytes, (off_t)PIECE * (i + 1) - 1, (unsigned char)('a' + i));
    }
    assert_int_equal(pread(lines, got, PIECES, 0), PIECES);
    assert_string_equal(got, "ABCDEFGHIJKLMNOPQRST");
    assert_null(disk_spool_free(s));
}

static void test_what_no_part_has_room_for_is_put_in_several(void **state) {
    enum { SIZE = 2 * DISK_SPOOL_PART + 5 };
    FILE_CLOSE int bytes = memory_file();
    FILE_CLOSE int lines = memory_file();
    struct disk_spool *s = spool_to(bytes, lines);
    unsigned char *own = mem_alloc(SIZE, 1);
    (void)state;
    memset(own, 1, SIZE);
    own[SIZE - 1] = 9;
    assert_null(disk_spool_room(s, DISK_SPOOL_PART + 1));
    disk_spool_put(s, own, SIZE);
    free(own);
    assert_null(disk_spool_free(s)); /* it drains */
    assert_int_equal(lseek(bytes, 0, SEEK_END), SIZE);
    assert_byte(bytes, SIZE - 1, 9);
    assert_byte(bytes, SIZE - 2, 1);
}

static void test_full_parts_are_held_until_they_are_given(void **state) {
    FILE_CLOSE int bytes = memory_file();
    FILE_CLOSE int lines = memory_file();
    struct disk_spool *s = spool_to(bytes, lines);
    BUF_FINI struct buf line = {0};
    (void)state;
    buf_puts(&line, "{}");
    assert_false(disk_spool_holds(s));
    for (int i = 0; i < 3; i++) {
        disk_spool_put(s, (const unsigned char *)"abc", 3);
        disk_spool_line(s, &line);
        assert_non_null(disk_spool_room(s, DISK_SPOOL_PART)); /* and so of the next part */
        assert_true(disk_spool_holds(s));
    }
    disk_spool_give(s);
    assert_false(disk_spool_holds(s));
    assert_int_equal(disk_spool_drain(s), 0);
    assert_int_equal(lseek(bytes, 0, SEEK_END), 9);
    assert_int_equal(lseek(lines, 0, SEEK_END), 6);
    assert_null(disk_spool_free(s));
}

static void test_what_the_disk_does_not_take_is_told(void **state) {
    FILE_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    FILE_CLOSE int lines = memory_file();
    (void)state;
    assert_true(full >= 0);
    struct disk_spool *s = spool_to(full, lines);
    BUF_FINI struct buf line = {0};
    buf_puts(&line, "{}");
    for (int i = 0; i < 20; i++) { /* nor does anybody wait for it for ever */
        disk_spool_put(s, (const unsigned char *)"abc", 3);
        disk_spool_line(s, &line);
        disk_spool_give(s);
    }
    assert_int_equal(disk_spool_drain(s), -ENOSPC);
    assert_int_equal(disk_spool_code(s), -ENOSPC);
    assert_int_equal(lseek(lines, 0, SEEK_END), 0); /* no line without its bytes */
    assert_null(disk_spool_free(s));
    assert_null(disk_spool_free(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_than_is_ever_held_arrives_whole_and_in_order),
        cmocka_unit_test(test_what_no_part_has_room_for_is_put_in_several),
        cmocka_unit_test(test_full_parts_are_held_until_they_are_given),
        cmocka_unit_test(test_what_the_disk_does_not_take_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
