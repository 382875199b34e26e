#include "agent/hosts/hosts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

/* ---- in full ---- */

/* "3: a/0 b/2 me@::1/4", or what is said against it. */
static const char *told(int code) {
    static char text[700];
    int n = snprintf(text, sizeof(text), "%zu:", h.n);
    for (size_t i = 0; i < h.n && !code && n < 600; i++)
        n +=
            snprintf(text + n, sizeof(text) - (size_t)n, " %s/%d", h.list[i].name, h.list[i].slots);
    return code ? err.msg : text;
}

#define NO_NAME(word)     "\"" word "\" is no host's name"
#define SLOTS(host, word) "host " host ": \"" word "\" workers: must be 1 to 1024"
#define TWICE(host)       "host " host " is named twice; give its workers as " host ":N"

static void test_each_list_is_read_as_a_whole(void **state) {
    (void)state;
    static const struct {
        const char *list, *told;
    } rows[] = {
        {"a", "1: a/0"},
        {"a:1,b:1024", "2: a/1 b/1024"},
        {"a:1025", SLOTS("a", "1025")},
        {"a:-1", SLOTS("a", "-1")},
        {"a:", SLOTS("a", "")},
        {":3", NO_NAME("")},
        {"b,a:99999999999999999999999999", SLOTS("a", "99999999999999999999")},
        {"a,b,a", TWICE("a")},
        {"a,me@a,A,a.", "4: a/0 me@a/0 A/0 a./0"},
        {"_a,0,a-b,a_b,a%1,a.b", "6: _a/0 0/0 a-b/0 a_b/0 a%1/0 a.b/0"},
        {"%a", NO_NAME("%a")},
        {".a", NO_NAME(".a")},
        {"@a", NO_NAME("@a")},
        {"]", NO_NAME("]")},
        {"[", NO_NAME("[")},
        {"[a", NO_NAME("[a")},
        {"a]", NO_NAME("a]")},
        {"]a[", NO_NAME("]a[")},
        {"[a]", "1: a/0"},
        {"[a]b", NO_NAME("[a]b")},
        {"[a]b:2", NO_NAME("[a]b")},
        {"[a]:2", "1: a/2"},
        {"[a:2", NO_NAME("[a")},
        {"[a]]", NO_NAME("[a]]")},
        {"[a[b]", NO_NAME("[a[b]")},
        {"me@[]", NO_NAME("me@[]")},
        {"me[a]", NO_NAME("me[a]")},
        {"me@[fe80::1%eth0]:7", "1: me@fe80::1%eth0/7"},
        {"::1", "1: ::1/0"},
        {":::", "1: :::/0"},
        {"a:b:2", "1: a:b:2/0"},
        {"[a]:2:3", NO_NAME("[a]:2")},
        {"a, b", NO_NAME(" b")},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_string_equal(told(list(rows[i].list)), rows[i].told);
}

static void test_each_line_is_read_as_a_whole(void **state) {
    (void)state;
    static const struct {
        const char *text, *told;
    } rows[] = {
        {"a", "1: a/0"},
        {"\n\n a \n\t\n#b\nc#d\n", "2: a/0 c/0"},
        {"a slots=3 slots=4\n", "1: a/4"},
        {"a:2 slots=3\n", "1: a/3"},
        {"a slots=3\r\nb\r\n", "2: a/3 b/0"},
        {"a\tslots=1024\n", "1: a/1024"},
        {"a slots=1025\n", "h:1: " SLOTS("a", "1025")},
        {"a slots=\n", "h:1: " SLOTS("a", "")},
        {"a slots=3#4\n", "1: a/3"},
        {"a b\n", "h:1: \"b\": only slots=N may follow the host"},
        {"a slots\n", "h:1: \"slots\": only slots=N may follow the host"},
        {"a slots=2 b\n", "h:1: \"b\": only slots=N may follow the host"},
        {"a:0\n", "h:1: " SLOTS("a", "0")},
        {"a:0 b\n", "h:1: " SLOTS("a", "0")},
        {"\n\na\n\na\n", "h:5: " TWICE("a")},
        {"a,b\n", "h:1: " NO_NAME("a,b")},
        {"", "h: names no host"},
        {"\n#a\n", "h: names no host"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        memset(&err, 0, sizeof(err));
        int code = hosts_parse_file(rows[i].text, strlen(rows[i].text), "h", &arena, &h, &err);
        assert_string_equal(told(code), rows[i].told);
    }
    assert_int_equal(hosts_parse_file("a\nb\0\n", 6, "h", &arena, &h, &err), -EINVAL);
    assert_string_equal(err.msg, "h:2: a NUL byte");
    assert_int_equal(hosts_parse_file("abc", 2, "h", &arena, &h, &err), 0);
    assert_string_equal(told(0), "1: ab/0");
}

/* Which bytes a name may begin with and hold. */
static void test_each_byte_is_a_names_or_is_not(void **state) {
    (void)state;
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    for (int c = 1; c < 256; c++) {
        char first[] = {(char)c, 'a', '\0'}, later[] = {'a', (char)c, 'a', '\0'};
        bool letter = strchr(letters, c);
        if (c == ',' || c == ':' || c == '[')
            continue; /* what they do stands above */
        assert_int_equal(list(first), letter || c == '_' ? 0 : -EINVAL);
        assert_int_equal(list(later), letter || strchr("._-@%", c) ? 0 : -EINVAL);
        arena_fini(&arena);
    }
}

static void test_names_and_lists_are_as_long_as_they_may_be(void **state) {
    (void)state;
    static char name[302], text[(HOSTS_MAX + 1) * 6], lines[(HOSTS_MAX + 1) * 6];
    memset(name, 'a', 301);
    REFUSED(list(name), "is no host's name");
    assert_int_equal(strlen(err.msg), 2 + 100 + strlen(" is no host's name"));
    name[300] = '\0';
    assert_int_equal(list(name), 0);
    for (int more = 0; more < 2; more++) {
        char *at = text, *line = lines;
        for (int i = 0; i < HOSTS_MAX + more; i++) {
            at += sprintf(at, "%s%x", i ? "," : "", i);
            line += sprintf(line, "%x\n", i);
        }
        assert_int_equal(list(text), more ? -EINVAL : 0);
        assert_string_equal(err.msg, more ? "more than 4096 hosts" : "");
        assert_int_equal(file(lines), more ? -EINVAL : 0);
        assert_string_equal(err.msg, more ? "hosts.txt:4097: more than 4096 hosts" : "");
    }
    assert_int_equal(h.n, 4096);
}

/* What came before is not touched by what is refused. */
static void test_what_is_refused_changes_nothing(void **state) {
    (void)state;
    assert_int_equal(list("a:3,b"), 0);
    REFUSED(list("c,c"), "twice");
    assert_string_equal(told(0), "2: a/3 b/0");
    REFUSED(file("c\nc\n"), "twice");
    REFUSED(file(""), "names no host");
    assert_string_equal(told(0), "2: a/3 b/0");
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
        cmocka_unit_test_teardown(test_each_list_is_read_as_a_whole, clear),
        cmocka_unit_test_teardown(test_each_line_is_read_as_a_whole, clear),
        cmocka_unit_test_teardown(test_each_byte_is_a_names_or_is_not, clear),
        cmocka_unit_test_teardown(test_names_and_lists_are_as_long_as_they_may_be, clear),
        cmocka_unit_test_teardown(test_what_is_refused_changes_nothing, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
