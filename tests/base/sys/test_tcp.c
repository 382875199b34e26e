#include "base/sys/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void parses(const char *text, const char *host, uint16_t port) {
    struct tcp_endpoint e;
    struct err err = {0};
    assert_int_equal(tcp_endpoint_parse(text, 99, &e, &err), 0);
    assert_string_equal(e.host, host);
    assert_int_equal(e.port, port);
}

static void refused(const char *text) {
    struct tcp_endpoint e = {.port = 1};
    struct err err = {0};
    assert_int_equal(tcp_endpoint_parse(text, 99, &e, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "host:port"));
    assert_int_equal(e.port, 1);
}

static void test_endpoints_are_read(void **state) {
    (void)state;
    parses("n0", "n0", 99);
    parses("n0:29400", "n0", 29400);
    parses("10.0.0.1:1", "10.0.0.1", 1);
    parses("[fe80::1]:65535", "fe80::1", 65535);
    parses("[::1]", "::1", 99);
}

static void test_what_is_no_endpoint_is_refused(void **state) {
    (void)state;
    refused("");
    refused(":29400");
    refused("n0:");
    refused("n0:0");
    refused("n0:65536");
    refused("n0:x");
    refused("fe80::1");
    refused("[fe80::1");
    refused("[fe80::1]29400");
    refused("[]:1");
}

static int bind_to(uint16_t port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 ? 0 : -errno;
    close(fd);
    return rc;
}

static void test_a_reserved_port_is_nobody_elses_until_it_is_let_go(void **state) {
    (void)state;
    int fd;
    uint16_t port;
    assert_int_equal(tcp_reserve_port(&fd, &port, NULL), 0);
    assert_int_equal(bind_to(port), -EADDRINUSE);
    close(fd);
    assert_int_equal(bind_to(port), 0);
}

static void test_reserved_ports_lie_outside_the_range_the_kernel_gives_away(void **state) {
    (void)state;
    unsigned low = 0, high = 0;
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u %u", &low, &high), 2);
    fclose(f);
    if (low <= 10000 && high >= 65535)
        skip();
    for (int i = 0; i < 200; i++) {
        int fd;
        uint16_t port;
        assert_int_equal(tcp_reserve_port(&fd, &port, NULL), 0);
        close(fd);
        assert_true(port >= 1024 && (port < low || port > high));
    }
}

static void test_a_listener_tells_its_port_and_a_second_one_is_refused(void **state) {
    (void)state;
    int fd, again;
    uint16_t port;
    struct err err = {0};
    assert_int_equal(tcp_listen("127.0.0.1", 0, 16, &fd, &port, NULL), 0);
    assert_int_not_equal(port, 0);
    assert_int_equal(tcp_listen("127.0.0.1", port, 16, &again, &port, &err), -EADDRINUSE);
    assert_non_null(strstr(err.msg, "127.0.0.1"));
    close(fd);
}

static void test_own_addresses_are_known_from_others(void **state) {
    (void)state;
    assert_true(tcp_host_is_ours("127.0.0.1"));
    assert_true(tcp_host_is_ours("localhost"));
    assert_false(tcp_host_is_ours("192.0.2.1"));       /* for documentation: nobody's */
    assert_false(tcp_host_is_ours("no-such.invalid")); /* reserved: never resolves */
}

static void test_the_address_towards_a_loopback_endpoint_is_loopback(void **state) {
    (void)state;
    struct tcp_endpoint e = {"127.0.0.1", 29400};
    char addr[TCP_HOST_MAX];
    struct err err = {0};
    assert_int_equal(tcp_address_towards(&e, addr, &err), 0);
    assert_string_equal(addr, "127.0.0.1");
    strcpy(e.host, "no-such.invalid");
    assert_true(tcp_address_towards(&e, addr, &err) < 0);
    assert_non_null(strstr(err.msg, "no-such.invalid"));
}

/* One that is hidden needs a hosts file of its own: tests/seeds/hosts.sh. */
static void test_what_says_loopback_by_itself_hides_nothing(void **state) {
    (void)state;
    static const char *const names[] = {"127.0.0.1",     "127.1",    "::1", "localhost",
                                        "ip6-localhost", "10.0.0.1", NULL};
    for (const char *const *name = names; *name; name++)
        assert_false(tcp_name_is_hidden(*name));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endpoints_are_read),
        cmocka_unit_test(test_what_is_no_endpoint_is_refused),
        cmocka_unit_test(test_a_reserved_port_is_nobody_elses_until_it_is_let_go),
        cmocka_unit_test(test_reserved_ports_lie_outside_the_range_the_kernel_gives_away),
        cmocka_unit_test(test_a_listener_tells_its_port_and_a_second_one_is_refused),
        cmocka_unit_test(test_own_addresses_are_known_from_others),
        cmocka_unit_test(test_the_address_towards_a_loopback_endpoint_is_loopback),
        cmocka_unit_test(test_what_says_loopback_by_itself_hides_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
