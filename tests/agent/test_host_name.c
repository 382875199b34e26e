/* The own full name, and whether a name leads to an address. */
#include "agent/host_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/str.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_leads_to_its_address_and_to_no_other),
        cmocka_unit_test(test_one_that_is_cancelled_says_nothing),
        cmocka_unit_test(test_a_loopback_address_has_no_name_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
