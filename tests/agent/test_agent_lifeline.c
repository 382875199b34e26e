/* The connection that proves by its end that a node's workers have ended, with a real store's end of it: what is sent, when it
 * is said to be open, and whether it ends in order or broken. */
#include "agent/agent_lifeline.h"

#include "agent/core/lifeline.h"
#include "agent/options.h"
#include "agent/store/lifelines.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

enum { PATIENCE_MS = 20000 };

static struct loop *loop;
static struct options o;
static struct agent_lifeline *l;
static int listener, peer;
static struct {
    int n;
    uint64_t id;
    bool open;
    int64_t kind;
} heard;
static char something[1];

/* ---- what may go wrong ---- */

static enum { WHOLE, SHORT, FAILED, NO_ENDS } sending;

ssize_t __real_send(int fd, const void *data, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t n, int flags) {
    assert_int_equal(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sending == FAILED ? -1 : __real_send(fd, data, sending == SHORT ? n - 1 : n, flags);
}

int __real_tcp_ends(int fd, char own[TCP_ENDS_MAX], char other[TCP_ENDS_MAX]);
int __wrap_tcp_ends(int fd, char own[TCP_ENDS_MAX], char other[TCP_ENDS_MAX]);
int __wrap_tcp_ends(int fd, char own[TCP_ENDS_MAX], char other[TCP_ENDS_MAX]) {
    return sending == NO_ENDS ? -ENOTCONN : __real_tcp_ends(fd, own, other);
}

/* ---- the tests ---- */

static void on_event(void *arg, const struct event *e) {
    assert_ptr_equal(arg, something);
    heard.n++;
    heard.kind = e->kind;
    heard.id = e->lifeline.id;
    heard.open = e->lifeline.open;
    loop_stop(loop);
}

static void on_late(void *arg, int64_t now_ns) {
    (void)arg, (void)now_ns;
    loop_stop(loop);
}

static int set_up(void **state) {
    uint16_t port = 0;
    struct err err;
    (void)state;
    memset(&heard, 0, sizeof(heard));
    sending = WHOLE;
    assert_int_equal(tcp_listen("127.0.0.1", 0, 8, &listener, &port, &err), 0);
    o = (struct options){.run_id = "job", .endpoint_host = "127.0.0.1", .endpoint_port = port};
    o.rdzv.access.token = "secret";
    loop = loop_new(&err);
    l = agent_lifeline_new(loop, &o, on_event, something);
    peer = -1;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    assert_null(agent_lifeline_free(l));
    loop_free(loop);
    close(listener);
    if (peer >= 0)
        close(peer);
    return 0;
}

/* Until the agent hears something. */
static void wait_for_event(bool open, uint64_t id) {
    int before = heard.n;
    struct loop_source *late = loop_timer(loop, on_late, NULL);
    loop_timer_at(late, clock_monotonic_ns() + PATIENCE_MS * 1000000LL);
    assert_int_equal(loop_run(loop, NULL), 0);
    loop_source_free(late);
    assert_int_equal(heard.n, before + 1);
    assert_int_equal(heard.kind, EVENT_LIFELINE);
    assert_int_equal(heard.open, open);
    assert_int_equal(heard.id, id);
}

static void wait_readable(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static void open_one(uint64_t id) {
    struct action a = {.kind = ACTION_LIFELINE_OPEN,
                       .lifeline = {.id = id,
                                    .claim = {.inc = "0123456789abcdef",
                                              .uid = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                              .revision = 17}}};
    agent_lifeline_do(l, &a);
}

static int accept_one(void) {
    wait_readable(listener);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void drop(void) {
    agent_lifeline_do(l, &(struct action){.kind = ACTION_LIFELINE_DROP});
}

/* What the other end reads at the end: 0 in order, -ECONNRESET broken. */
static int end_of(int fd) {
    char part[4096];
    ssize_t n;
    do {
        wait_readable(fd);
        n = recv(fd, part, sizeof(part), 0);
    } while (n > 0);
    return n < 0 ? -errno : 0;
}

static void test_an_open_lifeline_has_sent_its_claim(void **state) {
    BUF_FINI struct buf expected = {0};
    char own[TCP_ENDS_MAX], far_end[TCP_ENDS_MAX], text[4096] = "";
    (void)state;
    assert_int_equal(agent_lifeline_fd(l), 0);
    open_one(7);
    assert_int_equal(heard.n, 0); /* never from inside */
    assert_int_equal(agent_lifeline_fd(l), 0);
    wait_for_event(true, 7);
    peer = accept_one();
    assert_true(agent_lifeline_fd(l) > 2);
    assert_int_equal(tcp_ends(agent_lifeline_fd(l), own, far_end), 0);
    struct lifeline_claim claim = {
        .inc = "0123456789abcdef", .uid = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", .revision = 17};
    lifelines_put_request(&expected, "job", &claim,
                          &(struct lifeline_ends){.from = own, .to = far_end}, "secret");
    wait_readable(peer);
    ssize_t n = recv(peer, text, sizeof(text) - 1, 0);
    assert_int_equal(n, expected.len);
    assert_string_equal(text, buf_str(&expected));
}

static void number_of(int fd, int level, int name, int *ret) {
    socklen_t size = sizeof(*ret);
    assert_int_equal(getsockopt(fd, level, name, ret, &size), 0);
}

/* So that a host that is gone is noticed though nothing is sent. */
static void test_a_silent_lifeline_ends_after_twenty_seconds(void **state) {
    static const int names[] = {TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_USER_TIMEOUT};
    (void)state;
    open_one(1);
    wait_for_event(true, 1);
    int like = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), want, have;
    tcp_bound_silence(like, 20);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        number_of(like, IPPROTO_TCP, names[i], &want);
        number_of(agent_lifeline_fd(l), IPPROTO_TCP, names[i], &have);
        assert_int_equal(have, want);
    }
    number_of(agent_lifeline_fd(l), SOL_SOCKET, SO_KEEPALIVE, &have);
    assert_int_equal(have, 1);
    close(like);
}

static void test_one_that_the_store_ends_is_open_no_more(void **state) {
    (void)state;
    open_one(3);
    wait_for_event(true, 3);
    peer = accept_one();
    assert_int_equal(shutdown(peer, SHUT_WR), 0);
    wait_for_event(false, 3);
    assert_int_equal(agent_lifeline_fd(l), 0);
    assert_int_equal(end_of(peer), -ECONNRESET);
}

static void test_one_on_which_anything_comes_is_none(void **state) {
    (void)state;
    open_one(3);
    wait_for_event(true, 3);
    peer = accept_one();
    assert_int_equal(write(peer, "x", 1), 1);
    wait_for_event(false, 3);
    assert_int_equal(agent_lifeline_fd(l), 0);
    assert_int_equal(end_of(peer), -ECONNRESET);
}

static void test_one_that_is_dropped_ends_broken_and_says_nothing(void **state) {
    (void)state;
    open_one(3);
    wait_for_event(true, 3);
    peer = accept_one();
    drop();
    assert_int_equal(agent_lifeline_fd(l), 0);
    assert_int_equal(end_of(peer), -ECONNRESET);
    assert_int_equal(loop_run(loop, NULL), 0); /* nothing is left to wait for */
    assert_int_equal(heard.n, 1);
    drop();
}

static void test_one_that_is_dropped_before_it_stands_says_nothing(void **state) {
    (void)state;
    open_one(3);
    drop();
    assert_int_equal(loop_run(loop, NULL), 0);
    assert_int_equal(heard.n, 0);
    assert_int_equal(agent_lifeline_fd(l), 0);
}

static void test_the_next_takes_the_place_of_the_one_before(void **state) {
    (void)state;
    open_one(3);
    wait_for_event(true, 3);
    peer = accept_one();
    open_one(4);
    assert_int_equal(agent_lifeline_fd(l), 0);
    wait_for_event(true, 4);
    assert_int_equal(end_of(peer), -ECONNRESET);
    close(peer);
    peer = accept_one();
    assert_true(agent_lifeline_fd(l) > 2);
}

static void test_the_end_of_the_agent_is_an_end_in_order(void **state) {
    struct err err;
    (void)state;
    open_one(3);
    wait_for_event(true, 3);
    peer = accept_one();
    l = agent_lifeline_free(l);
    assert_int_equal(end_of(peer), 0);
    assert_int_equal(loop_run(loop, &err), 0);
    assert_int_equal(heard.n, 1);
    assert_null(agent_lifeline_free(NULL));
    assert_int_equal(agent_lifeline_fd(NULL), 0);
}

/* A claim of which a part is missing would be answered, and that too late. */
static void test_a_claim_goes_out_whole_or_the_connection_is_none(void **state) {
    (void)state;
    for (sending = SHORT; sending <= NO_ENDS; sending++) {
        open_one(sending);
        wait_for_event(false, sending);
        assert_int_equal(agent_lifeline_fd(l), 0);
        peer = accept_one();
        assert_int_equal(end_of(peer), -ECONNRESET);
        close(peer);
    }
    peer = -1;
}

static void test_where_nobody_listens_none_is_open(void **state) {
    (void)state;
    close(listener);
    open_one(5);
    wait_for_event(false, 5);
    assert_int_equal(agent_lifeline_fd(l), 0);
    uint16_t port = (uint16_t)o.endpoint_port;
    assert_int_equal(tcp_listen("127.0.0.1", port, 8, &listener, &port, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(test_an_open_lifeline_has_sent_its_claim),
        TEST(test_a_silent_lifeline_ends_after_twenty_seconds),
        TEST(test_one_that_the_store_ends_is_open_no_more),
        TEST(test_one_on_which_anything_comes_is_none),
        TEST(test_one_that_is_dropped_ends_broken_and_says_nothing),
        TEST(test_one_that_is_dropped_before_it_stands_says_nothing),
        TEST(test_the_next_takes_the_place_of_the_one_before),
        TEST(test_the_end_of_the_agent_is_an_end_in_order),
        TEST(test_a_claim_goes_out_whole_or_the_connection_is_none),
        TEST(test_where_nobody_listens_none_is_open),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
