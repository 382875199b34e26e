/* Addresses in words, messages piece by piece, and waits that end when they must. */
#include "scenarios/jobs/ranktrain/net/link.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"
#include "scenarios/jobs/ranktrain/net/tcp_message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const int64_t soon_ns = INT64_C(20000000), late_ns = INT64_C(60000000000);

static struct link_wait within(int64_t span_ns) {
    return (struct link_wait){.deadline_ns = deadline_in_ns(span_ns), .wake_fd = -1};
}

static struct link_address address(const char *host, int port) {
    struct link_address a = {0};
    struct sockaddr_in *v4 = (void *)&a.addr;
    struct sockaddr_in6 *v6 = (void *)&a.addr;
    if (strchr(host, ':')) {
        *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
        assert_int_equal(inet_pton(AF_INET6, host, &v6->sin6_addr), 1);
        a.length = sizeof(*v6);
    } else {
        *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        assert_int_equal(inet_pton(AF_INET, host, &v4->sin_addr), 1);
        a.length = sizeof(*v4);
    }
    return a;
}

static void test_an_address_is_named_with_its_port(void **state) {
    (void)state;
    static const struct {
        const char *host, *name;
        int port, loopback;
    } rows[] = {{"10.0.0.2", "10.0.0.2:29500", 29500, 0},
                {"127.0.0.1", "127.0.0.1:1", 1, 1},
                {"127.255.3.4", "127.255.3.4:65535", 65535, 1},
                {"128.0.0.1", "128.0.0.1:80", 80, 0},
                {"126.0.0.1", "126.0.0.1:80", 80, 0},
                {"1.0.0.127", "1.0.0.127:80", 80, 0},
                {"::1", "[::1]:29500", 29500, 1},
                {"::2", "[::2]:29500", 29500, 0},
                {"fe80::1", "[fe80::1]:7", 7, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char name[LINK_NAME];
        struct link_address a = address(rows[i].host, rows[i].port);
        assert_ptr_equal(link_name(&a, name), name);
        assert_string_equal(name, rows[i].name);
        assert_int_equal(link_port_of(&a), rows[i].port);
        assert_int_equal(!!link_is_loopback(&a), rows[i].loopback);
        link_set_port(&a, 4711);
        assert_int_equal(link_port_of(&a), 4711);
        struct link_address other = address(rows[i].host, 4711);
        assert_memory_equal(&a, &other, sizeof(a));
    }
    struct link_address none = {0};
    char name[LINK_NAME];
    assert_string_equal(link_name(&none, name), "?:0");
}

static int listener(int family, int *ret_port) {
    int no = 0, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct link_address a = address(family == AF_INET6 ? "::" : "127.0.0.1", 0);
    if (fd < 0)
        return -1;
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    if (bind(fd, (struct sockaddr *)&a.addr, a.length) < 0 || listen(fd, 4) < 0) {
        close(fd);
        return -1;
    }
    *ret_port = link_port(fd);
    return fd;
}

static void test_a_name_is_resolved_and_connected_to(void **state) {
    (void)state;
    struct link_address to, peer;
    struct err err;
    int port = 0, one = listener(AF_INET, &port);
    struct link_wait w = within(late_ns);
    assert_true(one >= 0 && port > 0);
    assert_int_equal(link_resolve("127.0.0.1", port, &to, &err), 0);
    struct link_address wanted = address("127.0.0.1", port);
    assert_memory_equal(&to, &wanted, sizeof(to));
    int fd = link_connect(&to, &w);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    int accepted = accept(one, NULL, NULL);
    assert_int_equal(link_peer(accepted, &peer), 0);
    assert_int_equal(link_port_of(&peer), link_port(fd));
    assert_true(link_is_loopback(&peer));
    link_close(&accepted);
    assert_int_equal(accepted, -1);
    link_close(&accepted);
    link_close(&fd);
    link_close(&one);
    assert_int_equal(link_connect(&to, &w), -ECONNREFUSED);
    assert_int_equal(link_resolve("no.such.host.invalid", 80, &to, &err), -EAGAIN);
    assert_memory_equal(err.msg, "the name no.such.host.invalid is not known: ", 44);
}

/* An IPv4 address in the clothes of IPv6 is one of IPv4. */
static void test_who_called_over_ipv4_is_named_so(void **state) {
    (void)state;
    int port = 0, six = listener(AF_INET6, &port);
    if (six < 0) {
        puts("there is no IPv6 here");
        skip();
    }
    struct link_address to = address("127.0.0.1", port), peer;
    struct link_wait w = within(late_ns);
    int fd = link_connect(&to, &w), accepted = accept(six, NULL, NULL);
    assert_true(fd >= 0 && accepted >= 0);
    assert_int_equal(link_peer(accepted, &peer), 0);
    struct link_address wanted = address("127.0.0.1", link_port(fd));
    assert_memory_equal(&peer, &wanted, sizeof(peer));
    to = address("::1", port);
    int other = link_connect(&to, &w), also = accept(six, NULL, NULL);
    if (other >= 0) {
        assert_int_equal(link_peer(also, &peer), 0);
        wanted = address("::1", link_port(other));
        char a[LINK_NAME], b[LINK_NAME];
        assert_string_equal(link_name(&peer, a), link_name(&wanted, b));
        close(also);
        close(other);
    }
    close(fd);
    close(accepted);
    close(six);
}

static void test_what_is_no_connection_is_an_error(void **state) {
    (void)state;
    struct link_address a;
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    assert_int_equal(link_peer(fd[0], &a), -ENOTSOCK);
    assert_int_equal(link_port(fd[0]), -ENOTSOCK);
    a = address("10.0.0.2", 1);
    a.addr.ss_family = 250;
    struct link_wait w = within(late_ns);
    assert_int_equal(link_connect(&a, &w), -EAFNOSUPPORT);
    close(fd[0]);
    close(fd[1]);
}

static void pair(int fd[2]) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
}

static void test_a_wait_ends_by_what_comes_first(void **state) {
    (void)state;
    int fd[2], wake[2];
    struct link_wait w = within(soon_ns);
    pair(fd);
    pair(wake);
    int64_t begun = deadline_now_ns();
    assert_int_equal(link_ready(fd[0], POLLIN, &w), -ETIMEDOUT);
    assert_true(deadline_now_ns() - begun >= soon_ns);
    assert_int_equal(link_ready(fd[0], POLLOUT, &w), 0); /* though the time is up */
    assert_int_equal(link_ready(-1, 0, &w), -ETIMEDOUT);
    w = within(late_ns);
    w.wake_fd = wake[0];
    assert_int_equal(write(fd[1], "x", 1), 1);
    assert_int_equal(link_ready(fd[0], POLLIN, &w), 0);
    assert_int_equal(write(wake[1], "x", 1), 1);
    assert_int_equal(link_ready(fd[0], POLLIN, &w), -ECANCELED);
    assert_int_equal(link_ready(-1, 0, &w), -ECANCELED);
    for (int i = 0; i < 2; i++) {
        close(fd[i]);
        close(wake[i]);
    }
}

/* More than any buffer takes; who receives it takes a part at a time. */
static void test_what_does_not_go_at_once_is_waited_with(void **state) {
    (void)state;
    enum { N = 3 * 1000 * 1000 };
    int fd[2];
    struct link_wait w = within(soon_ns), later = within(late_ns);
    char *sent = malloc(N), *got = calloc(N, 1);
    for (int i = 0; i < N; i++)
        sent[i] = (char)(i * 7 + i / 251);
    pair(fd);
    assert_int_equal(link_send(fd[0], sent, N, &w), -ETIMEDOUT);
    close(fd[0]);
    close(fd[1]);
    pair(fd);
    pid_t pid = fork();
    if (pid == 0)
        _exit(link_send(fd[0], sent, N, &later) != 0);
    close(fd[0]);
    assert_int_equal(link_receive(fd[1], got, N, &later), 0);
    assert_memory_equal(got, sent, N);
    assert_int_equal(link_receive(fd[1], got, 1, &later), -ECONNRESET);
    close(fd[1]);
    pair(fd);
    assert_int_equal(link_receive(fd[0], got, 1, &w), -ETIMEDOUT);
    assert_int_equal(link_send(fd[0], "abc", 0, &w), 0);
    assert_int_equal(link_receive(fd[1], got, 0, &w), 0);
    close(fd[1]);
    assert_int_equal(link_send(fd[0], "abc", 3, &later), -ECONNRESET);
    close(fd[0]);
    free(sent);
    free(got);
}

/* ---- messages ---- */

static void body_init(char *body, size_t n, int seed) {
    for (size_t i = 0; i < n; i++)
        body[i] = (char)(i * 31 + (size_t)seed);
}

static void test_a_message_goes_piece_by_piece(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 8, 9, 31, 32, 33, 300 * 1000};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        struct tcp_message out, in;
        size_t n = sizes[s];
        char *body = malloc(n + 1), *to = calloc(n + 1, 1);
        int fd[2], small = 4096;
        pair(fd);
        setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
        body_init(body, n, 3);
        tcp_message_out(&out, 17, body, n);
        tcp_message_in(&in, to, n);
        assert_int_equal(tcp_message_receive(&in, fd[1]), 0);
        assert_false(tcp_message_is_whole(&out) || tcp_message_is_whole(&in));
        while (!tcp_message_is_whole(&in)) {
            int a = tcp_message_is_whole(&out) ? 0 : tcp_message_send(&out, fd[0]);
            int b = tcp_message_receive(&in, fd[1]);
            assert_true(a >= 0 && b >= 0 && (a || b));
        }
        assert_true(tcp_message_is_whole(&out));
        assert_true(tcp_message_is_right(&in));
        assert_int_equal(in.head.number, 17);
        assert_memory_equal(to, body, n);
        for (int i = 0; i < 2; i++)
            close(fd[i]);
        free(body);
        free(to);
    }
}

/* The next message begins where this one ends. */
static void test_a_message_takes_no_more_than_its_own(void **state) {
    (void)state;
    struct tcp_message out, in;
    char one[5] = "12345", to[6] = "xxxxxx";
    int fd[2];
    pair(fd);
    for (int i = 0; i < 2; i++) {
        tcp_message_out(&out, (uint64_t)i, one, 5);
        assert_int_equal(tcp_message_send(&out, fd[0]), 1);
    }
    for (int i = 0; i < 2; i++) {
        tcp_message_in(&in, to, 5);
        assert_int_equal(tcp_message_receive(&in, fd[1]), 1);
        assert_true(tcp_message_is_whole(&in) && tcp_message_is_right(&in));
        assert_int_equal(in.head.number, i);
        assert_memory_equal(to, "12345x", 6);
    }
    close(fd[1]);
    tcp_message_out(&out, 3, one, 5);
    assert_int_equal(tcp_message_send(&out, fd[0]), -ECONNRESET);
    tcp_message_in(&in, to, 5);
    assert_int_equal(tcp_message_receive(&in, fd[0]), -ECONNRESET);
    close(fd[0]);
    assert_int_equal(tcp_message_send(&out, -1), -EBADF);
    assert_int_equal(tcp_message_receive(&in, -1), -EBADF);
}

/* Each bit of the body and of the number, and a body that is shorter. */
static void test_a_checksum_tells_each_bit(void **state) {
    (void)state;
    enum { N = 77 };
    char body[N];
    struct tcp_message out;
    body_init(body, N, 5);
    tcp_message_out(&out, 99, body, N);
    assert_true(tcp_message_is_right(&out));
    for (int i = 0; i < N * 8; i++) {
        body[i / 8] ^= (char)(1 << i % 8);
        assert_false(tcp_message_is_right(&out));
        body[i / 8] ^= (char)(1 << i % 8);
    }
    for (int i = 0; i < 64; i++) {
        out.head.number ^= UINT64_C(1) << i;
        assert_false(tcp_message_is_right(&out));
        out.head.number ^= UINT64_C(1) << i;
    }
    for (out.bytes = 0; out.bytes < N; out.bytes++)
        assert_false(tcp_message_is_right(&out));
    assert_true(tcp_message_is_right(&out));
}

/* Those of two builds are the same: they train together. And of what is exchanged in it nothing is equal by chance. */
static void test_words_in_each_others_place_are_another_message(void **state) {
    (void)state;
    enum { WORDS = 12 };
    uint64_t body[WORDS];
    struct tcp_message out;
    for (int i = 0; i < WORDS; i++)
        body[i] = UINT64_C(0x0123456789abcdef) * (uint64_t)(i + 1);
    tcp_message_out(&out, 7, (char *)body, sizeof(body));
    assert_true(out.head.checksum == UINT64_C(0xcf8af7a16208c903));
    for (int i = 0; i < WORDS; i++)
        for (int k = 0; k < i; k++) {
            uint64_t was = body[i];
            body[i] = body[k];
            body[k] = was;
            assert_false(tcp_message_is_right(&out));
            body[k] = body[i];
            body[i] = was;
        }
    assert_true(tcp_message_is_right(&out));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_address_is_named_with_its_port),
        cmocka_unit_test(test_a_name_is_resolved_and_connected_to),
        cmocka_unit_test(test_who_called_over_ipv4_is_named_so),
        cmocka_unit_test(test_what_is_no_connection_is_an_error),
        cmocka_unit_test(test_a_wait_ends_by_what_comes_first),
        cmocka_unit_test(test_what_does_not_go_at_once_is_waited_with),
        cmocka_unit_test(test_a_message_goes_piece_by_piece),
        cmocka_unit_test(test_a_message_takes_no_more_than_its_own),
        cmocka_unit_test(test_a_checksum_tells_each_bit),
        cmocka_unit_test(test_words_in_each_others_place_are_another_message),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
