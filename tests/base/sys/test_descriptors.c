#include "base/sys/descriptors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static void pair(int ends[2]) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void test_descriptors_arrive_in_order_with_their_message(void **state) {
    (void)state;
    int ends[2], first[2], second[2], got[2];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    char text[8] = "", byte = 0;
    pair(ends);
    assert_int_equal(pipe(first), 0);
    assert_int_equal(pipe(second), 0);
    assert_int_equal(descriptors_send(ends[0], "two", 3, (int[]){first[1], second[1]}, 2, 0), 0);
    struct iovec iov = {text, sizeof(text)};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    assert_int_equal(recvmsg(ends[1], &msg, 0), 3);
    assert_string_equal(text, "two");
    memcpy(got, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(got));
    assert_int_equal(write(got[0], "1", 1), 1);
    assert_int_equal(write(got[1], "2", 1), 1);
    assert_int_equal(read(first[0], &byte, 1), 1);
    assert_int_equal(byte, '1');
    assert_int_equal(read(second[0], &byte, 1), 1);
    assert_int_equal(byte, '2');
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(first[i]);
        close(second[i]);
        close(got[i]);
    }
}

static void test_a_peer_that_has_gone_is_an_error_and_no_signal(void **state) {
    (void)state;
    int ends[2];
    pair(ends);
    close(ends[1]);
    assert_int_equal(descriptors_send(ends[0], "x", 1, NULL, 0, MSG_DONTWAIT), -EPIPE);
    close(ends[0]);
}

static void test_a_number_above_the_limit_is_one_too_many(void **state) {
    (void)state;
    int ends[2];
    struct rlimit before, few;
    pair(ends);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(descriptors_lift(ends[0], 64), -EMFILE);
    int high = descriptors_lift(ends[1], 63);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(high, 63);
    assert_int_equal(close(ends[0]), -1); /* taken either way */
    close(high);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors_arrive_in_order_with_their_message),
        cmocka_unit_test(test_a_peer_that_has_gone_is_an_error_and_no_signal),
        cmocka_unit_test(test_a_number_above_the_limit_is_one_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
