#include "base/sys/loopback.h"
#include "tests/own_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void test_no_range_is_given_twice_while_it_is_held(void **state) {
    (void)state;
    enum { N = 20 };
    char prefix[N][LOOPBACK_PREFIX_MAX];
    int fd[N];
    struct err err;
    uint16_t port = own_port();
    for (int i = 0; i < N; i++) {
        fd[i] = loopback_claim(port, prefix[i], &err);
        assert_true(fd[i] >= 0);
        assert_memory_equal(prefix[i], "127.", 4);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(prefix[i], prefix[j]);
    }
    for (int i = 0; i < N; i++)
        close(fd[i]);
    char again[LOOPBACK_PREFIX_MAX];
    int one = loopback_claim(port, again, &err);
    assert_true(one >= 0);
    assert_string_equal(again, prefix[0]); /* it was given back */
    close(one);
}

static void test_a_port_that_is_taken_everywhere_is_named(void **state) {
    (void)state;
    struct sockaddr_in all = {.sin_family = AF_INET};
    socklen_t len = sizeof(all);
    char prefix[LOOPBACK_PREFIX_MAX] = "";
    struct err err;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server, (void *)&all, len), 0);
    assert_int_equal(listen(server, 1), 0);
    assert_int_equal(getsockname(server, (void *)&all, &len), 0);
    assert_int_equal(loopback_claim(ntohs(all.sin_port), prefix, &err), -EADDRINUSE);
    assert_non_null(strstr(err.msg, "is taken on all addresses of this host"));
    assert_string_equal(prefix, ""); /* written on success only */
    close(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_range_is_given_twice_while_it_is_held),
        cmocka_unit_test(test_a_port_that_is_taken_everywhere_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
