#include "agent/workers/orders.h"

#include "agent/workers/spec.h"

#include <errno.h>
#include <fcntl.h>
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

static void assert_texts(char *const *is, char *const *was) {
    size_t i = 0;
    for (; is[i] && was[i]; i++)
        assert_string_equal(is[i], was[i]);
    assert_ptr_equal(is[i], was[i]); /* both have ended */
}

static void assert_comes_back(const struct launch_order *l) {
    struct arena a = {0};
    struct launch_order is;
    int fd = -1;
    assert_int_equal(launch_write(l, &fd, NULL), 0);
    assert_int_equal(launch_read(fd, &a, &is, NULL), 0);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* it was taken */
    assert_int_equal(is.deadline_required, l->deadline_required);
    assert_int_equal(is.sandbox, l->sandbox);
    assert_string_equal(is.scratch, l->scratch);
    assert_int_equal(is.n, l->n);
    assert_int_equal(is.lifeline, 0);
    for (uint32_t i = 0; i < l->n; i++) {
        assert_texts(is.workers[i].argv, l->workers[i].argv);
        assert_texts(is.workers[i].env, l->workers[i].env);
        assert_string_equal(is.workers[i].out, l->workers[i].out);
        assert_string_equal(is.workers[i].err, l->workers[i].err);
    }
    arena_fini(&a);
}

/* Each part told apart from each other; one word, many, and none. */
static void test_whatever_is_written_comes_back_the_same(void **state) {
    (void)state;
    static char text[300][8], *many[301];
    char *one[] = {"true", NULL}, *two[] = {"A=1", "B=", NULL}, *none[] = {NULL};
    for (int i = 0; i < 300; i++) {
        snprintf(text[i], sizeof(text[i]), "%.*d", i % 5, i);
        many[i] = text[i];
    }
    struct launch_worker workers[] = {
        {one, two, "o0", "e0"}, {many, none, "", "e1"}, {none, many, "o2", ""}, {two, one, "", ""}};
    for (uint32_t n = 1; n <= 4; n++)
        for (int bits = 0; bits < 4; bits++)
            assert_comes_back(&(struct launch_order){.deadline_required = bits & 1,
                                                     .sandbox = bits & 2,
                                                     .scratch = n % 2 ? "" : "/tmp/s",
                                                     .n = n,
                                                     .workers = workers,
                                                     .lifeline = 7});
}

static int read_so_many(uint32_t n) {
    static struct launch_worker workers[WORKERS_MAX + 1];
    static char *none[] = {NULL};
    struct arena a = {0};
    struct launch_order l = {.scratch = "", .n = n, .workers = workers}, is;
    for (uint32_t i = 0; i < n; i++)
        workers[i] = (struct launch_worker){none, none, "", ""};
    int fd = -1;
    assert_int_equal(launch_write(&l, &fd, NULL), 0);
    int code = launch_read(fd, &a, &is, NULL);
    arena_fini(&a);
    return code;
}

static void test_a_group_has_one_worker_at_least_and_so_many_at_most(void **state) {
    (void)state;
    assert_int_equal(read_so_many(0), -EBADMSG);
    assert_int_equal(read_so_many(1), 0);
    assert_int_equal(read_so_many(WORKERS_MAX - 1), 0);
    assert_int_equal(read_so_many(WORKERS_MAX), 0);
    assert_int_equal(read_so_many(WORKERS_MAX + 1), -EBADMSG);
}

static void test_what_cannot_be_read_is_said_to_be(void **state) {
    (void)state;
    struct arena a = {0};
    struct launch_order l;
    struct err err = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(launch_read(ends[1], &a, &l, &err), -EBADF);
    assert_int_equal(fcntl(ends[1], F_GETFD), -1);
    close(ends[0]);
    arena_fini(&a);
}

/* Descriptor 0 is one as any other. */
static void test_descriptor_zero_can_be_passed(void **state) {
    (void)state;
    int ends[2], got = -1, keep = dup(0);
    struct stat sent, is;
    char byte = 7;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(fstat(fileno(file), &sent), 0);
    assert_int_equal(dup2(fileno(file), 0), 0);
    assert_int_equal(order_send(ends[0], &byte, 1, 0), 0);
    if (keep >= 0) {
        dup2(keep, 0);
        close(keep);
    } else
        close(0);
    assert_int_equal(order_receive(ends[1], &byte, 1, &got), 1);
    assert_true(got >= 0);
    assert_int_equal(fstat(got, &is), 0);
    assert_true(sent.st_ino == is.st_ino && sent.st_dev == is.st_dev);
    close(got);
    close(ends[0]);
    close(ends[1]);
    fclose(file);
}

/* Neither one that is too short nor one that is too long is taken for it. */
static void test_a_message_of_another_size_is_none(void **state) {
    (void)state;
    int ends[2], fd = 77;
    char text[9] = "12345678", got[8];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(order_send(ends[0], text, 7, -1), 0);
    assert_int_equal(order_send(ends[0], text, 8, -1), 0);
    assert_int_equal(order_receive(ends[1], got, 8, &fd), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(order_receive(ends[1], got, 8, &fd), 1);
    assert_memory_equal(got, text, 8);
    close(ends[0]);
    close(ends[1]);
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

static void test_what_the_kernel_has_no_room_for_may_go_later(void **state) {
    (void)state;
    static const int later[] = {-EAGAIN, -ENOBUFS, -ENOMEM, -ETOOMANYREFS},
                     never[] = {0, -EPIPE, -EBADF};
    for (size_t i = 0; i < sizeof(later) / sizeof(*later); i++)
        assert_true(order_may_go_later(later[i]));
    for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
        assert_false(order_may_go_later(never[i]));
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_group_that_was_written_is_read_back_whole),
        cmocka_unit_test(test_a_group_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(test_whatever_is_written_comes_back_the_same),
        cmocka_unit_test(test_a_group_has_one_worker_at_least_and_so_many_at_most),
        cmocka_unit_test(test_what_cannot_be_read_is_said_to_be),
        cmocka_unit_test(test_descriptor_zero_can_be_passed),
        cmocka_unit_test(test_a_message_of_another_size_is_none),
        cmocka_unit_test(test_messages_keep_their_bounds_and_bring_descriptors),
        cmocka_unit_test(test_a_side_that_does_not_read_is_told_of_and_never_waited_for),
        cmocka_unit_test(test_what_the_kernel_has_no_room_for_may_go_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
