/* Sockets: what is seen at a port of one's own network. */
#include "harness/host/sockets.h"

#include "base/arena.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_at(const char *address, int family, uint16_t *ret_port) {
    struct sockaddr_storage any = {.ss_family = (sa_family_t)family};
    struct sockaddr_in *v4 = (void *)&any;
    struct sockaddr_in6 *v6 = (void *)&any;
    socklen_t len = sizeof(any);
    inet_pton(family, address, family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (void *)&any, family == AF_INET ? sizeof(*v4) : sizeof(*v6)) < 0)
        return -1;
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (void *)&any, &len), 0);
    *ret_port = ntohs(family == AF_INET ? v4->sin_port : v6->sin6_port);
    return fd;
}

static int call(uint16_t port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (void *)&to, sizeof(to)), 0);
    return fd;
}

/* Returns how many are found; *ret_text is what was put. */
static size_t look(uint16_t port, struct buf *ret_text) {
    struct arena a = {0};
    struct err err = {0};
    struct json_writer w = {.out = ret_text};
    json_object(&w, NULL);
    sockets_put(&w, port, NULL, NULL);
    json_end_object(&w);
    const struct json *all = json_parse(&a, buf_str(ret_text), ret_text->len, &err);
    if (!all)
        fail_msg("%s: %s", err.msg, buf_str(ret_text));
    size_t n = json_get(all, "found")->length;
    arena_fini(&a);
    return n;
}

/* The kernel also gives ports at which another address of this host has a connection, or had one a
 * minute ago: those are no good here, and are held until one has been found that is. */
static int listen_alone(uint16_t *ret_port, struct buf *ret_text) {
    int held[64], n = 0, fd = listen_at("127.0.0.1", AF_INET, ret_port);
    while (look(*ret_port, ret_text) != 1 && n < 64) {
        held[n++] = fd;
        buf_clear(ret_text);
        fd = listen_at("127.0.0.1", AF_INET, ret_port);
    }
    while (n)
        close(held[--n]);
    return fd;
}

static void test_a_listener_and_both_ends_of_a_connection_are_found(void **state) {
    (void)state;
    struct buf text = {0};
    uint16_t port;
    char part[64];
    int listener = listen_alone(&port, &text);
    snprintf(part, sizeof(part), "{\"local\":\"127.0.0.1:%u\",\"state\":\"listen\"}", port);
    assert_non_null(strstr(buf_str(&text), part));
    buf_clear(&text);
    int client = call(port), server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(look(port, &text), 3);
    snprintf(part, sizeof(part), "\"remote\":\"127.0.0.1:%u\",\"state\":\"connected\"", port);
    assert_non_null(strstr(buf_str(&text), part));
    buf_clear(&text);
    /* The group has met and nobody listens any more: the connection still tells of it. */
    close(server);
    close(client);
    close(listener);
    /* The end that closed first stays for a minute; the other is gone once the kernel has handled
     * the last acknowledgement, of which nobody is told. */
    assert_in_range(look(port, &text), 1, 2);
    assert_null(strstr(buf_str(&text), "listen"));
    buf_fini(&text);
}

static void test_a_port_that_nobody_uses_has_nothing(void **state) {
    (void)state;
    struct buf text = {0};
    uint16_t port;
    close(listen_alone(&port, &text));
    buf_clear(&text);
    assert_int_equal(look(port, &text), 0);
    buf_fini(&text);
}

static void test_addresses_of_both_families_are_written_as_people_do(void **state) {
    (void)state;
    struct buf text = {0};
    uint16_t port;
    int listener = listen_at("::", AF_INET6, &port);
    if (listener < 0)
        skip(); /* a host without IPv6 */
    int client = call(port);
    look(port, &text);
    assert_non_null(strstr(buf_str(&text), "{\"local\":\":::"));
    assert_non_null(strstr(buf_str(&text), "\"local\":\"127.0.0.1:"));
    assert_null(strstr(buf_str(&text), "ffff"));
    close(client);
    close(listener);
    buf_fini(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_listener_and_both_ends_of_a_connection_are_found),
        cmocka_unit_test(test_a_port_that_nobody_uses_has_nothing),
        cmocka_unit_test(test_addresses_of_both_families_are_written_as_people_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
