#include "agent/store/limits/page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_what_has_an_origin_is_a_pages_and_refused(void **state) {
    (void)state;
    assert_non_null(page_refuses("http://example.com", "10.0.0.1:29400", NULL));
    assert_non_null(page_refuses("http://10.0.0.1:29400", "10.0.0.1:29400", NULL));
    assert_non_null(page_refuses("null", "localhost", NULL));
    assert_non_null(page_refuses("", "localhost", NULL));
}

static void test_addresses_and_private_names_are_hosts(void **state) {
    static const char *const good[] = {"10.0.0.1",          "10.0.0.1:29400",
                                       "[::1]:29400",       "[fd00::1]",
                                       "localhost:29400",   "node0",
                                       "node0.local",       "store.default.svc.cluster.local:29400",
                                       "store.default.svc", "node0.internal.",
                                       "NODE0.Internal"};
    (void)state;
    assert_null(page_refuses(NULL, NULL, NULL));
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        if (page_refuses(NULL, good[i], NULL))
            fail_msg("%s is refused", good[i]);
}

static void test_names_that_anybody_can_buy_are_no_hosts_unless_they_are_allowed(void **state) {
    static const char *const bad[] = {"example.com",
                                      "example.com:29400",
                                      "10.0.0.1.example.com",
                                      "local.example.com",
                                      "xlocal.com",
                                      "a:b:c",
                                      "[::1"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (!page_refuses(NULL, bad[i], "store.example.com,other.org"))
            fail_msg("%s is not refused", bad[i]);
    assert_non_null(strstr(page_refuses(NULL, "example.com", NULL), "--allow-host"));
    assert_null(page_refuses(NULL, "Store.example.com:29400", "a.org,store.example.com"));
    assert_null(page_refuses(NULL, "other.org", "store.example.com,other.org"));
}

static void test_this_host_has_its_own_name(void **state) {
    char name[256] = "";
    (void)state;
    gethostname(name, sizeof(name) - 1);
    if (strlen(name) + strlen(".example.com") >= sizeof(name))
        skip();
    strcat(name, ".example.com");
    assert_null(page_refuses(NULL, name, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_has_an_origin_is_a_pages_and_refused),
        cmocka_unit_test(test_addresses_and_private_names_are_hosts),
        cmocka_unit_test(test_names_that_anybody_can_buy_are_no_hosts_unless_they_are_allowed),
        cmocka_unit_test(test_this_host_has_its_own_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
