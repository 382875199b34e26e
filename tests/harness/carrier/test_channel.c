#include "harness/carrier/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_fds(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static struct buf text_of(size_t length) {
    struct buf text = {0};
    struct json_writer w = {.out = &text};
    char *s = malloc(length + 1);
    memset(s, 'x', length);
    s[length] = 0;
    json_object(&w, NULL);
    json_put_string(&w, "s", s);
    json_end_object(&w);
    free(s);
    return text;
}

static void send_and_receive(size_t length, size_t fds_n) {
    int ends[2], before = open_fds();
    int nulls[CHANNEL_FDS_MAX];
    struct buf text = text_of(length);
    struct message m;
    struct err err;
    assert_int_equal(channel_pair(ends, &err), 0);
    for (size_t i = 0; i < fds_n; i++)
        nulls[i] = open("/dev/null", O_RDONLY);
    assert_int_equal(channel_receive(ends[1], &m, &err), 0);
    assert_int_equal(channel_send(ends[0], &text, nulls, fds_n, &err), 0);
    for (size_t i = 0; i < fds_n; i++)
        close(nulls[i]);
    assert_int_equal(channel_receive(ends[1], &m, &err), 1);
    assert_int_equal(strlen(json_get_string(m.json, "s", "")), length);
    for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
        assert_int_equal(m.fds[i] >= 0, i < fds_n);
    if (fds_n) {
        int fd = message_take_fd(&m, fds_n - 1);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        close(fd);
    }
    message_fini(&m);
    close(ends[0]);
    assert_int_equal(channel_receive(ends[1], &m, &err), -ECONNRESET);
    close(ends[1]);
    buf_fini(&text);
    assert_int_equal(open_fds(), before);
}

static void test_a_message_arrives_whole_with_its_descriptors(void **state) {
    (void)state;
    for (size_t fds = 0; fds <= CHANNEL_FDS_MAX; fds++)
        send_and_receive(10, fds);
}

static void test_a_message_longer_than_a_packet_does_too(void **state) {
    (void)state;
    for (size_t fds = 0; fds <= CHANNEL_FDS_MAX; fds++)
        send_and_receive(1000000, fds);
}

static void test_what_is_no_json_is_refused_and_holds_nothing_open(void **state) {
    (void)state;
    int ends[2], before = open_fds();
    struct buf text = {0};
    struct message m;
    struct err err;
    assert_int_equal(channel_pair(ends, &err), 0);
    buf_puts(&text, "{\"op\":");
    assert_int_equal(channel_send(ends[0], &text, ends, 2, &err), 0);
    assert_int_equal(channel_receive(ends[1], &m, &err), -EINVAL);
    buf_fini(&text);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(open_fds(), before);
}

static void test_an_end_that_is_gone_is_an_error(void **state) {
    (void)state;
    int ends[2];
    struct buf text = text_of(1);
    struct err err;
    assert_int_equal(channel_pair(ends, &err), 0);
    close(ends[1]);
    assert_int_equal(channel_send(ends[0], &text, NULL, 0, &err), -EPIPE);
    close(ends[0]);
    buf_fini(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_arrives_whole_with_its_descriptors),
        cmocka_unit_test(test_a_message_longer_than_a_packet_does_too),
        cmocka_unit_test(test_what_is_no_json_is_refused_and_holds_nothing_open),
        cmocka_unit_test(test_an_end_that_is_gone_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
