#include "agent/workers/orders.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static int write_launch(void) {
    static char *argv[] = {"python3", "", "x=\ny", NULL}, *env[] = {"RANK=0", NULL},
                *none[] = {NULL};
    struct launch_worker workers[] = {{argv, env, "/out", ""}, {argv, none, "", "/err"}};
    struct launch_order l = {.deadline_required = true,
                             .scratch = "/tmp/scratch",
                             .sandbox = true,
                             .n = 2,
                             .workers = workers};
    int fd = -1;
    assert_int_equal(launch_write(&l, &fd, NULL), 0);
    return fd;
}

static void test_a_group_that_was_written_is_read_back_whole(void **state) {
    (void)state;
    struct arena a = {0};
    struct launch_order l;
    assert_int_equal(launch_read(write_launch(), &a, &l, NULL), 0);
    assert_true(l.deadline_required);
    assert_string_equal(l.scratch, "/tmp/scratch");
    assert_true(l.sandbox);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.workers[0].argv[1], "");
    assert_string_equal(l.workers[0].argv[2], "x=\ny");
    assert_null(l.workers[0].argv[3]);
    assert_string_equal(l.workers[0].env[0], "RANK=0");
    assert_string_equal(l.workers[0].out, "/out");
    assert_null(l.workers[1].env[0]);
    assert_string_equal(l.workers[1].err, "/err");
    arena_fini(&a);
}

static void test_a_group_that_is_cut_anywhere_is_refused(void **state) {
    (void)state;
    struct stat st;
    int whole = write_launch();
    assert_int_equal(fstat(whole, &st), 0);
    close(whole);
    for (off_t size = 0; size < st.st_size; size++) {
        struct arena a = {0};
        struct launch_order l;
        struct err err = {0};
        int fd = write_launch();
        assert_int_equal(ftruncate(fd, size), 0);
        assert_int_equal(launch_read(fd, &a, &l, &err), -EBADMSG);
        assert_int_equal(err.code, -EBADMSG);
        arena_fini(&a);
    }
}

static void test_messages_keep_their_bounds_and_bring_descriptors(void **state) {
    (void)state;
    int ends[2], fd = 77;
    struct order sent = {.kind = ORDER_STOP, .signo = 15, .grace_ms = 30000}, got;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(order_receive(ends[1], &got, sizeof(got), &fd), -EAGAIN);
    assert_int_equal(order_send(ends[0], &sent, sizeof(sent), -1), 0);
    assert_int_equal(order_send(ends[0], &sent, sizeof(sent), ends[0]), 0);
    assert_int_equal(order_receive(ends[1], &got, sizeof(got), &fd), 1);
    assert_int_equal(got.grace_ms, 30000);
    assert_int_equal(fd, -1);
    assert_int_equal(order_receive(ends[1], &got, sizeof(got), &fd), 1);
    assert_true(fd > 2);
    close(fd);
    close(ends[0]);
    assert_int_equal(order_receive(ends[1], &got, sizeof(got), &fd), 0);
    assert_int_equal(order_send(ends[1], &sent, sizeof(sent), -1), -EPIPE);
    close(ends[1]);
}

static void test_a_side_that_does_not_read_is_told_of_and_never_waited_for(void **state) {
    (void)state;
    int ends[2], code = 0;
    struct order o = {.kind = ORDER_KILL};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    for (int i = 0; i < 1000000 && code == 0; i++)
        code = order_send(ends[0], &o, sizeof(o), -1);
    assert_int_equal(code, -EAGAIN);
    close(ends[0]);
    close(ends[1]);
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_group_that_was_written_is_read_back_whole),
        cmocka_unit_test(test_a_group_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(test_messages_keep_their_bounds_and_bring_descriptors),
        cmocka_unit_test(test_a_side_that_does_not_read_is_told_of_and_never_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
