/* Connections by name: names and what they stand for are played here, in the place of the system's
 * resolver. */
#include "base/sys/clock.h"
#include "base/sys/dial.h"
#include "base/sys/file.h"
#include "tests/base/http/played.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

enum { PATIENCE_MS = 20000 };

/* ---- the resolver ---- */

static struct {
    const char *addresses[4];
    int asked;
    bool mute; /* until it is false again nobody is answered */
    pthread_mutex_t lock;
    pthread_cond_t changed;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void names_set_mute(bool mute) {
    pthread_mutex_lock(&names.lock);
    names.mute = mute;
    pthread_cond_broadcast(&names.changed);
    pthread_mutex_unlock(&names.lock);
}

static int names_asked(void) {
    pthread_mutex_lock(&names.lock);
    int asked = names.asked;
    pthread_mutex_unlock(&names.lock);
    return asked;
}

static struct addrinfo *address_new(const char *number, const char *port) {
    struct {
        struct addrinfo info;
        struct sockaddr_storage address;
    } *a = calloc(1, sizeof(*a));
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&a->address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&a->address;
    bool is_v6 = strchr(number, ':');
    a->address.ss_family = is_v6 ? AF_INET6 : AF_INET;
    v4->sin_port = htons((uint16_t)atoi(port)); /* it lies at the same place in both */
    if (inet_pton(a->address.ss_family, number,
                  is_v6 ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr) != 1) {
        free(a);
        return NULL;
    }
    a->info = (struct addrinfo){.ai_family = a->address.ss_family,
                                .ai_socktype = SOCK_STREAM,
                                .ai_addrlen = is_v6 ? sizeof(*v6) : sizeof(*v4),
                                .ai_addr = (struct sockaddr *)&a->address};
    return &a->info;
}

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **ret) {
    struct addrinfo **next = ret;
    *ret = address_new(host, port);
    if (*ret)
        return 0;
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    pthread_mutex_lock(&names.lock);
    names.asked++;
    while (names.mute)
        pthread_cond_wait(&names.changed, &names.lock);
    for (int i = 0; names.addresses[i]; i++) {
        *next = address_new(names.addresses[i], port);
        next = &(*next)->ai_next;
    }
    pthread_mutex_unlock(&names.lock);
    return *ret ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *a) {
    while (a) {
        struct addrinfo *next = a->ai_next;
        free(a);
        a = next;
    }
}

/* ---- the clock ---- */

static int64_t ahead_s; /* of the system's */

int clock_gettime(clockid_t id, struct timespec *ret) {
    long code = syscall(SYS_clock_gettime, id, ret);
    if (code == 0)
        ret->tv_sec += ahead_s;
    return (int)code;
}

/* ---- the dials ---- */

static struct test {
    struct loop *loop;
    struct loop_source *patience;
    struct dialer *dialer;
    int told, wanted, connected;
    char why[512], peer[TCP_ENDS_MAX];
} t;

static void give_up(void *arg, int64_t now_ns) {
    (void)arg;
    (void)now_ns;
    fail_msg("nothing has come within %d ms", PATIENCE_MS);
}

static void on_dial(void *arg, int fd, const char *why) {
    char own[TCP_ENDS_MAX];
    assert_ptr_equal(arg, &t);
    t.told++;
    snprintf(t.why, sizeof(t.why), "%s", why);
    if (fd >= 0) {
        t.connected++;
        assert_int_equal(tcp_ends(fd, own, t.peer), 0);
        file_close(&fd);
    }
    if (t.told >= t.wanted)
        loop_stop(t.loop);
}

static void await(int wanted) {
    t.wanted = wanted;
    loop_timer_at(t.patience, clock_monotonic_ns() + PATIENCE_MS * 1000000LL);
    while (t.told < wanted)
        assert_int_equal(loop_run(t.loop, NULL), 0);
    loop_timer_off(t.patience);
}

static void dial(void) {
    int before = t.told;
    dial_begin(t.dialer, on_dial, &t);
    assert_int_equal(t.told, before);
    await(before + 1);
}

static void on_moment(void *arg, int64_t now_ns) {
    (void)arg;
    (void)now_ns;
    loop_stop(t.loop);
}

static void pass(int ms) {
    struct loop_source *moment = loop_timer(t.loop, on_moment, NULL);
    loop_timer_at(moment, clock_monotonic_ns() + ms * 1000000LL);
    assert_int_equal(loop_run(t.loop, NULL), 0);
    loop_source_free(moment);
}

static void begin(const char *host, uint16_t port, const char *first, const char *second) {
    struct tcp_endpoint to = {.port = port};
    snprintf(to.host, sizeof(to.host), "%s", host);
    names.addresses[0] = first;
    names.addresses[1] = second;
    t.dialer = dialer_new(t.loop, &to);
}

static int set_up(void **state) {
    (void)state;
    t = (struct test){.loop = loop_new(NULL)};
    t.patience = loop_timer(t.loop, give_up, NULL);
    names.asked = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dialer_free(t.dialer);
    loop_source_free(t.patience);
    loop_free(t.loop);
    return 0;
}

static int listen_at(const char *host, uint16_t *port) {
    int fd;
    assert_int_equal(tcp_listen(host, *port, 16, &fd, port, NULL), 0);
    return fd;
}

static void test_a_number_asks_nobody(void **state) {
    uint16_t port = 0;
    int fd = listen_at("127.0.0.1", &port);
    (void)state;
    begin("127.0.0.1", port, NULL, NULL);
    dial();
    assert_int_equal(t.connected, 1);
    assert_int_equal(names_asked(), 0);
    file_close(&fd);
}

static void test_where_one_address_refuses_the_next_is_tried(void **state) {
    uint16_t port = 0;
    int fd = listen_at("127.0.0.2", &port);
    (void)state;
    begin("store", port, "127.0.0.1", "127.0.0.2");
    dial();
    assert_int_equal(t.connected, 1);
    assert_memory_equal(t.peer, "127.0.0.2:", 10);
    file_close(&fd);
}

static void test_where_one_family_has_no_way_the_other_is_tried(void **state) {
    uint16_t port = 0;
    int fd = listen_at("127.0.0.1", &port);
    (void)state;
    begin("store", port, "100::1", "127.0.0.1"); /* RFC 6666: discarded by everybody */
    dial();
    assert_int_equal(t.connected, 1);
    file_close(&fd);
}

static void test_where_one_address_is_silent_the_next_is_tried_beside_it(void **state) {
    uint16_t port = 0;
    struct crowd k;
    int fd = listen_at("127.0.0.2", &port);
    (void)state;
    crowd_begin(&k, "127.0.0.1", port);
    begin("store", port, "127.0.0.1", "127.0.0.2");
    dial();
    assert_int_equal(t.connected, 1);
    assert_memory_equal(t.peer, "127.0.0.2:", 10);
    crowd_end(&k);
    file_close(&fd);
}

static void test_where_none_answers_the_system_says_why(void **state) {
    uint16_t port;
    int fd;
    (void)state;
    assert_int_equal(tcp_reserve_port(&fd, &port, NULL), 0);
    begin("store", port, "127.0.0.1", "127.0.0.2");
    dial();
    assert_int_equal(t.connected, 0);
    assert_non_null(strstr(t.why, "cannot connect to store port"));
    assert_non_null(strstr(t.why, "Connection refused"));
    file_close(&fd);
}

/* One question for all, and none for who comes within the next minute. */
static void test_a_name_is_asked_for_once(void **state) {
    uint16_t port = 0;
    int fd = listen_at("127.0.0.1", &port);
    (void)state;
    begin("store", port, "127.0.0.1", NULL);
    for (int i = 0; i < 5; i++)
        dial_begin(t.dialer, on_dial, &t);
    await(5);
    dial();
    assert_int_equal(t.connected, 6);
    assert_int_equal(names_asked(), 1);
    file_close(&fd);
}

static void test_a_name_that_nobody_knows_is_told(void **state) {
    (void)state;
    begin("store", 1, NULL, NULL);
    dial();
    assert_int_equal(t.connected, 0);
    assert_non_null(strstr(t.why, "cannot resolve host 'store'"));
}

/* It has moved: who was there does not answer any more, and the name says so by now. */
static void test_a_name_whose_addresses_fail_is_asked_for_again(void **state) {
    uint16_t port = 0;
    int fd = listen_at("127.0.0.2", &port);
    (void)state;
    begin("store", port, "127.0.0.1", NULL);
    dial();
    assert_int_equal(t.connected, 0);
    names.addresses[0] = "127.0.0.2";
    dial();
    assert_int_equal(names_asked(), 1); /* not as often as somebody tries */
    ahead_s += 2;
    dial();
    assert_int_equal(t.connected, 1);
    assert_int_equal(names_asked(), 2);
    ahead_s += 30;
    dial();
    assert_int_equal(names_asked(), 2);
    file_close(&fd);
}

static void test_a_resolver_that_says_nothing_holds_nobody(void **state) {
    (void)state;
    begin("store", 1, "127.0.0.1", NULL);
    names_set_mute(true);
    struct dial *d = dial_begin(t.dialer, on_dial, &t);
    pass(20); /* the loop goes on */
    assert_string_equal(dial_doing(d), "looking up host 'store'");
    dial_cancel(d);
    dial_begin(t.dialer, on_dial, &t);
    t.dialer = dialer_free(t.dialer);
    names_set_mute(false);
    pass(20);
    assert_int_equal(t.told, 0);
}

static void test_a_dial_may_be_cancelled_while_it_connects(void **state) {
    struct crowd k;
    (void)state;
    crowd_begin(&k, "127.0.0.1", 0);
    begin("127.0.0.1", k.port, NULL, NULL);
    struct dial *d = dial_begin(t.dialer, on_dial, &t);
    pass(1);
    assert_non_null(strstr(dial_doing(d), "connecting to 127.0.0.1 port"));
    dial_cancel(d);
    dial_begin(t.dialer, on_dial, &t);
    t.dialer = dialer_free(t.dialer);
    assert_int_equal(t.told, 0);
    crowd_end(&k);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_a_number_asks_nobody),
        T(test_where_one_address_refuses_the_next_is_tried),
        T(test_where_one_family_has_no_way_the_other_is_tried),
        T(test_where_one_address_is_silent_the_next_is_tried_beside_it),
        T(test_where_none_answers_the_system_says_why),
        T(test_a_name_is_asked_for_once),
        T(test_a_name_that_nobody_knows_is_told),
        T(test_a_name_whose_addresses_fail_is_asked_for_again),
        T(test_a_resolver_that_says_nothing_holds_nobody),
        T(test_a_dial_may_be_cancelled_while_it_connects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
