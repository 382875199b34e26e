/* What processes hold, read of ourselves and of a child that opens more. */
#include "harness/observe/held.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

static void test_a_descriptor_is_what_its_link_says(void **state) {
    (void)state;
    assert_int_equal(held_kind_of("socket:[1234]"), HELD_socket);
    assert_int_equal(held_kind_of("pipe:[77]"), HELD_pipe);
    assert_int_equal(held_kind_of("anon_inode:[pidfd]"), HELD_pidfd);
    assert_int_equal(held_kind_of("pidfd:[12]"), HELD_pidfd);
    assert_int_equal(held_kind_of("anon_inode:[eventpoll]"), HELD_anonymous);
    assert_int_equal(held_kind_of("/dev/null"), HELD_file);
    assert_int_equal(held_kind_of("/memfd:x (deleted)"), HELD_file);
}

static void test_one_more_of_a_kind_is_one_more(void **state) {
    (void)state;
    struct held_sum before = {0}, after = {0};
    int ends[2];
    held_add(&before, getpid());
    assert_int_equal(pipe(ends), 0);
    int null = open("/dev/null", O_RDONLY), poll = epoll_create1(0);
    held_add(&after, getpid());
    assert_int_equal(after.processes, 1);
    assert_true(after.rss > 0 && after.threads == 1);
    assert_int_equal(after.kinds[HELD_pipe], before.kinds[HELD_pipe] + 2);
    assert_int_equal(after.kinds[HELD_file], before.kinds[HELD_file] + 1);
    assert_int_equal(after.kinds[HELD_anonymous], before.kinds[HELD_anonymous] + 1);
    assert_int_equal(after.kinds[HELD_socket], before.kinds[HELD_socket]);
    assert_int_equal(after.fds, before.fds + 4);
    close(ends[0]), close(ends[1]), close(null), close(poll);
}

static void test_who_is_gone_holds_nothing(void **state) {
    (void)state;
    struct held_sum h = {0};
    held_add(&h, 0x3ffffff);
    held_add_descendants(&h, 0x3ffffff, NULL, 0);
    assert_int_equal(h.processes, 0);
}

static void test_what_was_unknown_of_one_is_unknown_of_all(void **state) {
    (void)state;
    struct held_sum h = {.threads = -1, .fds = -1};
    held_add(&h, getpid());
    assert_true(h.rss > 0 && h.threads == -1 && h.fds == -1);
    h.rss = -1;
    held_add(&h, getpid());
    assert_true(h.rss == -1);
    assert_int_equal(h.processes, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_descriptor_is_what_its_link_says),
        cmocka_unit_test(test_one_more_of_a_kind_is_one_more),
        cmocka_unit_test(test_what_was_unknown_of_one_is_unknown_of_all),
        cmocka_unit_test(test_who_is_gone_holds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
