/* What a silent socket takes in, what it drops, and what the kernel counts of both. */
#include "faults/mechanism/socket_cut.h"

#include <stddef.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static int heard, said; /* two ends of a connection over the loopback */

static int connect_both(void **state) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    said = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server, (void *)&at, len), 0);
    assert_int_equal(listen(server, 1), 0);
    assert_int_equal(getsockname(server, (void *)&at, &len), 0);
    assert_int_equal(connect(said, (void *)&at, len), 0);
    heard = accept(server, NULL, NULL);
    assert_true(heard >= 0);
    close(server);
    return 0;
}

static int close_both(void **state) {
    close(heard);
    close(said);
    return 0;
}

static bool comes(int wait_ms) {
    char c;
    struct pollfd p = {.fd = heard, .events = POLLIN};
    return poll(&p, 1, wait_ms) == 1 && recv(heard, &c, 1, 0) == 1;
}

/* On the loopback what is sent has come, or has been dropped, when send returns. */
static void test_drops_are_not_taken_in(void **state) {
    int64_t before = socket_taken_in(heard);
    assert_true(before >= 0);
    assert_int_equal(send(said, "a", 1, 0), 1);
    assert_true(comes(0));
    assert_int_equal(socket_taken_in(heard), before + 1);

    assert_int_equal(socket_silence(heard, true), 0);
    assert_int_equal(send(said, "b", 1, 0), 1);
    assert_false(comes(0));
    assert_int_equal(socket_taken_in(heard), before + 1);
    assert_true(socket_drops(heard) > 0);

    socket_mend(heard);
    assert_true(comes(10000)); /* sent again */
    assert_true(socket_taken_in(heard) > before + 1);
}

static void test_only_connections_tell(void **state) {
    int datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(socket_taken_in(datagrams) < 0);
    close(datagrams);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_drops_are_not_taken_in, connect_both, close_both),
        cmocka_unit_test(test_only_connections_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
