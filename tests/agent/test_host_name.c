/* The own full name, and whether a name leads to an address. */
#include "agent/host_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/tcp.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* ---- names as a test has them ---- */

/* NULL: as the system has it. */
static struct {
    const char *host;         /* what this host is called */
    const char *full;         /* the canonical name of that; "": there is none */
    const char *leads_to[12]; /* the addresses of the canonical name */
    bool nameless, unknown;   /* neither is known */
} names;
static int lists, asked; /* that were not given back; for a name of x */
static pthread_mutex_t slow = PTHREAD_MUTEX_INITIALIZER;
static int64_t deadline_ns, deadline_is_ns;

int __wrap_gethostname(char *name, size_t size);
int __wrap_gethostname(char *name, size_t size) {
    assert_int_equal(size, TCP_HOST_MAX - 1); /* what does not fit is not ended */
    snprintf(name, size, "%s", names.host ? names.host : "localhost");
    return names.nameless ? -1 : 0;
}

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret) {
    bool canonical = hints->ai_flags & AI_CANONNAME, ours = names.full && str_eq(node, names.full);
    struct addrinfo **end = ret;
    int rc = 0;
    assert_int_equal(hints->ai_socktype, SOCK_STREAM); /* each address once */
    if (canonical && (names.unknown || !str_eq(node, names.host)))
        return EAI_NONAME;
    if (!ours && !canonical) {
        pthread_mutex_lock(&slow);
        asked += node[0] == 'x';
        pthread_mutex_unlock(&slow);
        if (node[0] == 'x')
            return EAI_NONAME;
        rc = __real_getaddrinfo(node, service, hints, ret);
    } else if (canonical) {
        rc = __real_getaddrinfo("127.0.0.1", NULL, &(struct addrinfo){0}, ret);
        (*ret)->ai_canonname = names.full && names.full[0] ? strdup(names.full) : NULL;
    } else {
        if (!names.leads_to[0])
            return EAI_AGAIN;
        for (int i = 0; names.leads_to[i] && rc == 0; i++) {
            rc = __real_getaddrinfo(names.leads_to[i], service, hints, end);
            end = &(*end)->ai_next;
        }
    }
    lists += rc == 0;
    return rc;
}

void __real_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list) {
    lists--;
    __real_freeaddrinfo(list);
}

void __real_loop_timer_at(struct loop_source *s, int64_t at_ns);
void __wrap_loop_timer_at(struct loop_source *s, int64_t at_ns);
void __wrap_loop_timer_at(struct loop_source *s, int64_t at_ns) {
    deadline_ns = at_ns;
    __real_loop_timer_at(s, deadline_is_ns ? deadline_is_ns : at_ns);
}

/* Threads that nobody waits for any more are waited for at the end: they hold what is theirs. */
static pthread_t threads[64];
static size_t n_threads;

int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg) {
    (void)attr;
    assert_true(n_threads < sizeof(threads) / sizeof(*threads));
    int code = __real_pthread_create(ret, NULL, fn, arg);
    if (code == 0)
        threads[n_threads++] = *ret;
    return code;
}

static int join(void **state) {
    (void)state;
    while (n_threads)
        pthread_join(threads[--n_threads], NULL);
    return 0;
}

/* ---- the tests ---- */

struct asked {
    struct loop *loop;
    int answers;
    bool found;
};

static void on_checked(void *arg, bool found) {
    struct asked *a = arg;
    a->answers++;
    a->found = found;
    loop_stop(a->loop);
}

static bool found(const char *host) {
    struct err err;
    struct asked a = {.loop = loop_new(&err)};
    assert_non_null(a.loop);
    host_check_begin(a.loop, host, on_checked, &a);
    assert_int_equal(a.answers, 0); /* never from inside */
    assert_int_equal(loop_run(a.loop, &err), 0);
    assert_int_equal(a.answers, 1);
    loop_free(a.loop);
    return a.found;
}

static void test_a_name_leads_to_its_address_and_to_no_other(void **state) {
    (void)state;
    assert_true(found("localhost 127.0.0.1"));
    assert_false(found("localhost 10.1.2.3"));
    assert_false(found("localhost"));
    assert_false(found("no-such-host.invalid 127.0.0.1"));
    assert_false(found("localhost localhost"));
}

static void test_one_that_is_cancelled_says_nothing(void **state) {
    (void)state;
    struct err err;
    struct asked a = {.loop = loop_new(&err)};
    assert_null(host_check_cancel(host_check_begin(a.loop, "localhost 127.0.0.1", on_checked, &a)));
    assert_int_equal(loop_run(a.loop, &err), 0); /* nothing is left to wait for */
    assert_int_equal(a.answers, 0);
    assert_null(host_check_cancel(NULL));
    loop_free(a.loop);
}

/* Others would take it for themselves. */
static void test_a_loopback_address_has_no_name_for_others(void **state) {
    (void)state;
    struct arena a = {0};
    assert_null(host_name_find("127.0.0.1", &a));
    assert_null(host_name_find("::1", &a));
    assert_null(host_name_find("203.0.113.77", &a)); /* of nobody's */
    arena_fini(&a);
}

static void assert_found(const char *addr, const char *expected) {
    struct arena a = {0};
    const char *is = host_name_find(addr, &a);
    if (!expected)
        assert_null(is);
    else
        assert_string_equal(is, expected);
    arena_fini(&a);
    assert_int_equal(lists, 0);
}

static int call_it_own(void **state) {
    (void)state;
    memset(&names, 0, sizeof(names));
    names.host = "own";
    names.full = "own.example";
    names.leads_to[0] = "10.0.0.1";
    names.leads_to[1] = "fd00::1";
    names.leads_to[2] = "127.0.1.1"; /* as Debian's installer has it */
    names.leads_to[3] = "::1";
    return 0;
}

static int forget(void **state) {
    (void)state;
    memset(&names, 0, sizeof(names));
    deadline_is_ns = 0;
    return 0;
}

static void test_the_full_name_is_told_with_an_address_that_it_leads_to(void **state) {
    struct arena a = {0};
    (void)state;
    assert_found("10.0.0.1", "own.example 10.0.0.1");
    assert_found("fd00::1", "own.example fd00::1");
    assert_found("127.0.1.1", NULL); /* others would take it for themselves */
    assert_found("::1", NULL);
    assert_found("10.0.0.2", NULL);
    assert_found("fd00::2", NULL);
    assert_found("0a00:0001::", NULL); /* of another family */
    assert_found("no number", NULL);
    assert_string_equal(host_name_full(&a), "own.example");
    arena_fini(&a);
}

static void test_of_many_addresses_eight_are_looked_at(void **state) {
    static const char *const many[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5",
                                       "10.0.0.6", "10.0.0.7", "10.0.0.8", "10.0.0.9"};
    (void)state;
    for (size_t i = 0; i < sizeof(many) / sizeof(*many); i++)
        names.leads_to[i] = many[i];
    assert_found("10.0.0.8", "own.example 10.0.0.8");
    assert_found("10.0.0.9", NULL);
    names.leads_to[1] = NULL; /* what is behind the last is of before */
    assert_found("10.0.0.2", NULL);
    assert_found("10.0.0.1", "own.example 10.0.0.1");
}

static void test_a_host_without_a_full_name_has_none_for_others(void **state) {
    char longest[TCP_HOST_MAX + 1], address[TCP_HOST_MAX + 64];
    struct arena a = {0};
    (void)state;
    names.full = "";
    assert_found("10.0.0.1", NULL);
    names.full = "10.0.0.1"; /* is no name */
    assert_found("10.0.0.1", NULL);
    memset(longest, 'x', sizeof(longest));
    longest[TCP_HOST_MAX] = '\0';
    names.full = longest;
    assert_found("10.0.0.1", NULL);
    longest[TCP_HOST_MAX - 1] = '\0';
    assert_string_equal(host_name_full(&a), longest);
    arena_fini(&a);
    names.full = "own.example";
    memset(address, '1', sizeof(address));
    address[sizeof(address) - 1] = '\0';
    assert_found(address, NULL);
    names.leads_to[0] = NULL;
    assert_found("10.0.0.1", NULL);
    names.unknown = true;
    assert_found("10.0.0.1", NULL);
    assert_null(host_name_full(&a));
    names.unknown = false;
    names.nameless = true;
    assert_found("10.0.0.1", NULL);
    assert_null(host_name_full(&a));
    assert_int_equal(lists, 0);
}

static void test_a_name_is_looked_up_for_three_seconds(void **state) {
    struct err err;
    struct asked a = {.loop = loop_new(&err)};
    (void)state;
    int64_t before = clock_monotonic_ns();
    struct host_check *c = host_check_begin(a.loop, "localhost 127.0.0.1", on_checked, &a);
    assert_true(deadline_ns >= before + 3000000000);
    assert_true(deadline_ns <= clock_monotonic_ns() + 3000000000);
    host_check_cancel(c);
    deadline_is_ns = 1; /* it is over, and nothing was heard */
    pthread_mutex_lock(&slow);
    a.found = true;
    host_check_begin(a.loop, "localhost 127.0.0.1", on_checked, &a);
    int rc = loop_run(a.loop, &err);
    pthread_mutex_unlock(&slow);
    assert_int_equal(rc, 0);
    assert_int_equal(a.answers, 1);
    assert_false(a.found);
    loop_free(a.loop);
}

/* What is no name with an address is not looked up. */
static void test_what_cannot_be_looked_up_is_not_found(void **state) {
    char host[TCP_HOST_MAX + 32];
    (void)state;
    int before = asked;
    assert_false(found("localhost"));
    memset(host, 'x', sizeof(host));
    strcpy(host + TCP_HOST_MAX, " 127.0.0.1");
    assert_false(found(host));
    assert_int_equal(asked, before);
    strcpy(host + TCP_HOST_MAX - 1, " 127.0.0.1");
    assert_false(found(host));
    assert_int_equal(asked, before + 1);
}

#define OWN(name) cmocka_unit_test_setup_teardown(name, call_it_own, forget)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_leads_to_its_address_and_to_no_other),
        cmocka_unit_test(test_one_that_is_cancelled_says_nothing),
        cmocka_unit_test(test_a_loopback_address_has_no_name_for_others),
        OWN(test_the_full_name_is_told_with_an_address_that_it_leads_to),
        OWN(test_of_many_addresses_eight_are_looked_at),
        OWN(test_a_host_without_a_full_name_has_none_for_others),
        cmocka_unit_test_teardown(test_a_name_is_looked_up_for_three_seconds, forget),
        cmocka_unit_test(test_what_cannot_be_looked_up_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, join);
}
