#include "agent/hosts/hosts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct arena arena;
static struct hosts h;
static struct err err;

static int clear(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static int list(const char *text) {
    memset(&err, 0, sizeof(err));
    return hosts_parse_list(text, &arena, &h, &err);
}

static int file(const char *text) {
    memset(&err, 0, sizeof(err));
    return hosts_parse_file(text, strlen(text), "hosts.txt", &arena, &h, &err);
}

static void host(size_t i, const char *name, int slots) {
    assert_true(i < h.n);
    assert_string_equal(h.list[i].name, name);
    assert_int_equal(h.list[i].slots, slots);
}

#define REFUSED(call, words)                                                                       \
    do {                                                                                           \
        assert_int_equal(call, -EINVAL);                                                           \
        if (!strstr(err.msg, words))                                                               \
            fail_msg("\"%s\" is not in \"%s\"", words, err.msg);                                   \
    } while (0)

static void test_a_list_names_hosts_and_their_workers(void **state) {
    (void)state;
    assert_int_equal(list("host1,host2:4,root@10.0.0.3:2"), 0);
    assert_int_equal(h.n, 3);
    host(0, "host1", 0);
    host(1, "host2", 4);
    host(2, "root@10.0.0.3", 2);
}

static void test_the_colons_of_an_address_are_its_own(void **state) {
    (void)state;
    assert_int_equal(list("fe80::1,[fe80::2]:3,me@[::1]"), 0);
    host(0, "fe80::1", 0);
    host(1, "fe80::2", 3);
    host(2, "me@::1", 0);
    assert_int_equal(list("me@[::2]:5"), 0);
    host(0, "me@::2", 5);
    REFUSED(list("[::1],::1"), "host ::1 is named twice");
    REFUSED(list("[::1"), "no host's name");
    REFUSED(list("[]"), "no host's name");
    REFUSED(list("a[::1]"), "no host's name");
    REFUSED(list("[[::1]"), "no host's name");
    REFUSED(list("::1]"), "no host's name");
}

static void test_what_is_no_list_is_refused_with_the_word(void **state) {
    char name[400] = "";
    (void)state;
    REFUSED(list(""), "\"\" is no host's name");
    REFUSED(list("a,,b"), "\"\" is no host's name");
    REFUSED(list("a,-oProxyCommand=x"), "-oProxyCommand=x");
    REFUSED(list("a;reboot"), "a;reboot");
    REFUSED(list("a b"), "a b");
    memset(name, 'a', sizeof(name) - 1);
    REFUSED(list(name), "aaaa\" is no host's name");
    REFUSED(list("a:0"), "host a: \"0\" workers: must be 1 to 1024");
    REFUSED(list("a:x"), "\"x\" workers");
    REFUSED(list("a,b,a:2"), "host a is named twice");
}

static void test_a_file_has_a_host_a_line_and_comments(void **state) {
    (void)state;
    assert_int_equal(file("# ours\nn1\n\n n2 slots=4 # big\nn3:2\r\nn4"), 0);
    assert_int_equal(h.n, 4);
    host(0, "n1", 0);
    host(1, "n2", 4);
    host(2, "n3", 2);
    host(3, "n4", 0);
}

static void test_an_error_in_a_file_names_its_line(void **state) {
    (void)state;
    REFUSED(file("a\nb slots=x\n"), "hosts.txt:2: host b: \"x\" workers");
    REFUSED(file("a\n\nb max=3\n"), "hosts.txt:3: \"max=3\": only slots=N");
    REFUSED(file("a\na\n"), "hosts.txt:2: host a is named twice");
    REFUSED(file("# nothing\n"), "hosts.txt: names no host");
    REFUSED(file(""), "names no host");
    assert_int_equal(hosts_parse_file("a\0b\n", 4, "h", &arena, &h, &err), -EINVAL);
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_list_names_hosts_and_their_workers, clear),
        cmocka_unit_test_teardown(test_the_colons_of_an_address_are_its_own, clear),
        cmocka_unit_test_teardown(test_what_is_no_list_is_refused_with_the_word, clear),
        cmocka_unit_test_teardown(test_a_file_has_a_host_a_line_and_comments, clear),
        cmocka_unit_test_teardown(test_an_error_in_a_file_names_its_line, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
