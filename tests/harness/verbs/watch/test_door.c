/* Who may ask the page of `watch --serve`: by host, origin, token and method; and what a line is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/verbs/watch/door.h"

#include <string.h>

#define TOKEN "0123456789abcdef0123456789abcdef"

static int admits(bool beyond, const struct door_request *r, enum door_room *ret) {
    struct web_door d = {TOKEN, 8080, beyond};
    const char *why = NULL;
    int status = door_admit(&d, r, ret, &why);
    assert_true(status ? why && *why : !why);
    return status;
}

static int asks(const char *target, const char *host, const char *origin, bool posts) {
    enum door_room room;
    struct door_request r = {target, host, origin, posts};
    return admits(false, &r, &room);
}

static void test_rooms_by_name_and_method(void **state) {
    (void)state;
    enum door_room room;
    struct door_request r = {"/" TOKEN "/", "127.0.0.1:8080", NULL, false};
    assert_int_equal(admits(false, &r, &room), 0);
    assert_int_equal(room, DOOR_PAGE);
    r.target = "/" TOKEN "/events";
    assert_int_equal(admits(false, &r, &room), 0);
    assert_int_equal(room, DOOR_EVENTS);
    r.target = "/" TOKEN "/say";
    assert_int_equal(admits(false, &r, &room), 405);
    r.posts = true;
    assert_int_equal(admits(false, &r, &room), 0);
    assert_int_equal(room, DOOR_WORDS);
    r.target = "/" TOKEN "/";
    assert_int_equal(admits(false, &r, &room), 405);
}

static void test_token(void **state) {
    (void)state;
    static const char *const wrong[] = {"/",
                                        "",
                                        "/say",
                                        "/" TOKEN,
                                        "/1123456789abcdef0123456789abcdef/say",
                                        "/0123456789abcdef0123456789abcdee/say",
                                        "/0123456789abcdef0123456789abcde/say",
                                        "/" TOKEN "0/say",
                                        "//" TOKEN "/say",
                                        "http://127.0.0.1:8080/" TOKEN "/say"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(asks(wrong[i], "127.0.0.1:8080", NULL, true), 403);
    assert_int_equal(asks("/" TOKEN "/../etc/passwd", "127.0.0.1:8080", NULL, false), 404);
    assert_int_equal(asks("/" TOKEN "/events?x", "127.0.0.1:8080", NULL, false), 404);
}

static void test_host_is_a_number_of_ours(void **state) {
    (void)state;
    static const char *const ours[] = {"127.0.0.1:8080", "localhost:8080", "[::1]:8080",
                                       "127.0.0.9:8080"};
    static const char *const others[] = {NULL,
                                         "",
                                         "127.0.0.1",
                                         "127.0.0.1:8081",
                                         "example.org:8080",
                                         "localhost.example.org:8080",
                                         "192.0.2.1:8080",
                                         "127.0.0.1.example.org:8080",
                                         "[::1",
                                         "0.0.0.0:8080"};
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        assert_int_equal(asks("/" TOKEN "/", ours[i], NULL, false), 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_int_equal(asks("/" TOKEN "/", others[i], NULL, false), 403);
}

static void test_beyond_this_host_a_name_is_still_none(void **state) {
    (void)state;
    enum door_room room;
    struct door_request r = {"/" TOKEN "/", "192.0.2.1:8080", NULL, false};
    assert_int_equal(admits(true, &r, &room), 0);
    r.host = "example.org:8080";
    assert_int_equal(admits(true, &r, &room), 403);
}

static void test_origin(void **state) {
    (void)state;
    const char *say = "/" TOKEN "/say", *host = "127.0.0.1:8080";
    assert_int_equal(asks(say, host, "http://127.0.0.1:8080", true), 0);
    assert_int_equal(asks(say, host, "http://localhost:8080", true), 403);
    assert_int_equal(asks(say, host, "https://127.0.0.1:8080", true), 403);
    assert_int_equal(asks(say, host, "http://example.org", true), 403);
    assert_int_equal(asks(say, host, "null", true), 403);
    assert_int_equal(asks(say, host, "", true), 403);
}

static int address(const char *text, bool beyond, const char *host, int port) {
    struct tcp_endpoint e;
    struct err err = {0};
    int r = door_address(text, beyond, &e, &err);
    assert_true(r == 0 || *err.msg);
    if (r == 0) {
        assert_string_equal(e.host, host);
        assert_int_equal(e.port, port);
    }
    return r;
}

static void test_addresses(void **state) {
    (void)state;
    assert_int_equal(address("127.0.0.1:8080", false, "127.0.0.1", 8080), 0);
    assert_int_equal(address("localhost", false, "127.0.0.1", 0), 0);
    assert_int_equal(address("[::1]:80", false, "::1", 80), 0);
    assert_true(address("0.0.0.0:8080", false, NULL, 0) < 0);
    assert_true(address("[::]:8080", false, NULL, 0) < 0);
    assert_true(address("192.0.2.1:8080", false, NULL, 0) < 0);
    assert_int_equal(address("192.0.2.1:8080", true, "192.0.2.1", 8080), 0);
    assert_int_equal(address("0.0.0.0:8080", true, "0.0.0.0", 8080), 0);
    assert_true(address("example.org:8080", true, NULL, 0) < 0);
    assert_true(address("127.0.0.1:99999", false, NULL, 0) < 0);
    assert_true(address("", false, NULL, 0) < 0);
}

static int line(const char *body, size_t n, const char *expected) {
    char got[DOOR_LINE_MAX];
    const char *why = NULL;
    int status = door_line(body, n, got, &why);
    assert_true(status ? why && *why : !why);
    if (!status)
        assert_string_equal(got, expected);
    return status;
}

static void test_lines(void **state) {
    (void)state;
    char most[DOOR_LINE_MAX + 1];
    memset(most, 'x', sizeof(most));
    assert_int_equal(line("go", 2, "go"), 0);
    assert_int_equal(line("go\n", 3, "go"), 0);
    assert_int_equal(line("", 0, NULL), 400);
    assert_int_equal(line("\n", 1, NULL), 400);
    assert_int_equal(line("go\ngo", 5, NULL), 400);
    assert_int_equal(line("go\r", 3, NULL), 400);
    assert_int_equal(line("g\0o", 3, NULL), 400);
    assert_int_equal(line(most, DOOR_LINE_MAX, NULL), 413);
    most[DOOR_LINE_MAX - 1] = '\0';
    assert_int_equal(line(most, DOOR_LINE_MAX - 1, most), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rooms_by_name_and_method),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_host_is_a_number_of_ours),
        cmocka_unit_test(test_beyond_this_host_a_name_is_still_none),
        cmocka_unit_test(test_origin),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
