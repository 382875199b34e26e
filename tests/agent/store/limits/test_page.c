/* Who a page may be, and whose name it has. What this host is called is this file's. */
#include "agent/store/limits/page.h"

#include "base/sys/tcp.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <cmocka.h>

static const char *own_name = "";
static bool nameless;

static int fake_name(char *to, size_t n) {
    assert_int_equal(n, TCP_HOST_MAX - 1);
    if (nameless)
        return -1;
    strncpy(to, own_name, n);
    return 0;
}

#define gethostname(to, n) fake_name(to, n)
#include "agent/store/limits/page.c"

static void test_what_has_an_origin_is_a_pages_and_refused(void **state) {
    (void)state;
    assert_non_null(page_refuses("http://example.com", "10.0.0.1:29400", NULL));
    assert_non_null(page_refuses("http://10.0.0.1:29400", "10.0.0.1:29400", NULL));
    assert_non_null(page_refuses("null", "localhost", NULL));
    assert_non_null(page_refuses("", "localhost", NULL));
}

static void test_addresses_and_private_names_are_hosts(void **state) {
    static const char *const good[] = {"10.0.0.1",
                                       "10.0.0.1:29400",
                                       "[::1]:29400",
                                       "[fd00::1]",
                                       "",
                                       "[::ffff:10.0.0.1]:80",
                                       "localhost:29400",
                                       "node0",
                                       "node0.local",
                                       "store.default.svc.cluster.local:29400",
                                       "store.default.svc",
                                       "node0.internal.",
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
    (void)state;
    static const struct {
        const char *own, *host;
        bool ours;
    } all[] = {
        {"node0", "node0.example.com", true},
        {"node0", "NODE0.example.com:29400", true},
        {"node0", "node0.example.com.", true},
        {"node0", "node00.example.com", false},
        {"node0", "node.example.com", false},
        {"node0", "xnode0.example.com", false},
        {"node0.example.com", "node0.example.com", true},
        {"node0.example.com", "node0.example.org", false},
        {"node0.example.com", "node0.example.community", false},
        {"", "node0.example.com", false},
        {"", ".example.com", false},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        own_name = all[i].own;
        if (!page_refuses(NULL, all[i].host, NULL) != all[i].ours)
            fail_msg("%s, of %s", all[i].host, all[i].own);
        nameless = true;
        if (!page_refuses(NULL, all[i].host, NULL))
            fail_msg("%s, of nobody", all[i].host);
        nameless = false;
    }
    char longest[TCP_HOST_MAX];
    memset(longest, 'h', sizeof(longest) - 1);
    longest[TCP_HOST_MAX - 1] = '\0';
    longest[100] = '.';
    own_name = longest;
    assert_null(page_refuses(NULL, longest, NULL));
    own_name = "";
}

/* Each of the domains that are nobody's to buy: what is below it, it alone, and what only ends like it. */
static void test_below_a_private_domain_all_names_are_hosts(void **state) {
    (void)state;
    static const char *const domains[] = {"localhost", "local", "internal", "home.arpa",
                                          "test",      "alt",   "svc",      "cluster.local"};
    for (size_t i = 0; i < sizeof(domains) / sizeof(*domains); i++) {
        char below[64], like[64], above[64];
        snprintf(below, sizeof(below), "a.%s", domains[i]);
        snprintf(like, sizeof(like), "a.b%s", domains[i]);
        snprintf(above, sizeof(above), "%s.com", domains[i]);
        assert_null(page_refuses(NULL, below, NULL));
        assert_non_null(page_refuses(NULL, above, NULL));
        if (strcmp(domains[i], "cluster.local") != 0) /* that is below another one */
            assert_non_null(page_refuses(NULL, like, NULL));
        if (strcmp(domains[i], "home.arpa") == 0)
            assert_non_null(page_refuses(NULL, domains[i], NULL));
        else
            assert_null(page_refuses(NULL, domains[i], NULL));
    }
}

/* Wherever in the list, and no part of it. */
static void test_a_name_is_allowed_as_a_whole(void **state) {
    (void)state;
    static const struct {
        const char *allowed;
        bool is;
    } all[] = {{"", false},         {"a.b.com", true},     {"A.B.com", true},
               {"x,a.b.com", true}, {"a.b.com,x", true},   {"x,a.b.com,y", true},
               {",a.b.com", true},  {",,a.b.com,,", true}, {"a.b.co", false},
               {"a.b.comm", false}, {"xa.b.com", false},   {"a.b.com x", false},
               {",", false},        {"x.b.com", false}};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (!page_refuses(NULL, "a.b.com", all[i].allowed) != all[i].is)
            fail_msg("%s", all[i].allowed);
    assert_null(page_refuses(NULL, ".", "")); /* a name without a dot */
    assert_string_equal(page_refuses(NULL, "[::1", NULL),
                        "this store does not understand the Host of this request");
    assert_string_equal(page_refuses("", NULL, NULL),
                        "this store answers no web page: the request has an Origin");
    assert_string_equal(page_refuses(NULL, "a.b.com", NULL),
                        "this store does not know the name of the Host of this request as its own: "
                        "ask for it by its address, or start it with --allow-host NAME");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_has_an_origin_is_a_pages_and_refused),
        cmocka_unit_test(test_addresses_and_private_names_are_hosts),
        cmocka_unit_test(test_names_that_anybody_can_buy_are_no_hosts_unless_they_are_allowed),
        cmocka_unit_test(test_this_host_has_its_own_name),
        cmocka_unit_test(test_below_a_private_domain_all_names_are_hosts),
        cmocka_unit_test(test_a_name_is_allowed_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
