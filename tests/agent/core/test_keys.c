#include "agent/core/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define INC "0123456789abcdef"

static const char *text_of(struct store_key key, const char *run_id) {
    static char text[KEY_SIZE], end[KEY_SIZE];
    key_format(&key, run_id, text, end);
    return text;
}

static const char *end_of(struct store_key key, const char *run_id) {
    static char text[KEY_SIZE], end[KEY_SIZE];
    key_format(&key, run_id, text, end);
    return end;
}

static void test_keys_are_written_as_the_protocol_says(void **state) {
    (void)state;
    assert_string_equal(text_of((struct store_key){.kind = KEY_CUR}, "job"), "/rankrun/job/cur");
    struct store_key ack = {.kind = KEY_ACK, .round = 7, .inc = INC, .uid = "aa"};
    assert_string_equal(text_of(ack, "job"), "/rankrun/job/" INC "/ack/0000000007/aa");
    struct store_key plan = {.kind = KEY_PLAN, .inc = INC, .pid = "3-12-1", .uid = "aa"};
    assert_string_equal(text_of(plan, "job"), "/rankrun/job/" INC "/plan/3-12-1/aa");
    struct store_key head = {.kind = KEY_HEAD, .inc = INC};
    assert_string_equal(text_of(head, "job"), "/rankrun/job/" INC "/head");
    assert_string_equal(end_of(head, "job"), "");
    assert_string_equal(text_of((struct store_key){.kind = KEY_CUR}, "a/b%c\x01\x7f\xc3\xa9"),
                        "/rankrun/a%2fb%25c%01%7f%c3%a9/cur");
}

static void test_scopes_are_ranges(void **state) {
    (void)state;
    struct store_key all = {.kind = KEY_INCARNATION, .scope = KEYS_ALL, .inc = INC};
    assert_string_equal(text_of(all, "job"), "/rankrun/job/" INC "/");
    assert_string_equal(end_of(all, "job"), "/rankrun/job/" INC "0");
    struct store_key gone = {.kind = KEY_GONE, .scope = KEYS_ALL, .inc = INC};
    assert_string_equal(text_of(gone, "job"), "/rankrun/job/" INC "/gone/");
    assert_string_equal(end_of(gone, "job"), "/rankrun/job/" INC "/gone0");
    struct store_key done = {.kind = KEY_DONE, .scope = KEYS_ALL, .inc = INC, .round = 12};
    assert_string_equal(text_of(done, "job"), "/rankrun/job/" INC "/done/0000000012/");
    assert_string_equal(end_of(done, "job"), "/rankrun/job/" INC "/done/00000000120");
}

static void test_below_takes_all_earlier_rounds_and_not_this_one(void **state) {
    (void)state;
    struct store_key below = {.kind = KEY_ACK, .scope = KEYS_BELOW, .inc = INC, .round = 10};
    char from[KEY_SIZE], end[KEY_SIZE], nine[KEY_SIZE], ten[KEY_SIZE], none[KEY_SIZE];
    key_format(&below, "job", from, end);
    struct store_key k = {.kind = KEY_ACK, .inc = INC, .round = 9, .uid = "ff"};
    key_format(&k, "job", nine, none);
    k.round = 10;
    strcpy(k.uid, "00");
    key_format(&k, "job", ten, none);
    assert_true(strcmp(nine, from) > 0 && strcmp(nine, end) < 0);
    assert_true(strcmp(ten, end) > 0);
}

static void test_every_key_is_read_back_as_it_was_written(void **state) {
    (void)state;
    for (enum key_kind kind = KEY_CUR; kind < KEY_INCARNATION; kind++) {
        struct store_key key = {.kind = kind}, back;
        bool store = kind == KEY_QUARANTINE; /* of no run */
        bool own = kind != KEY_CUR && kind != KEY_LEAD && kind != KEY_HEAD && !store;
        if (kind != KEY_CUR && !store)
            strcpy(key.inc, INC);
        if (own)
            strcpy(key.uid, "00112233445566778899aabbccddeeff");
        if (kind == KEY_PLAN)
            strcpy(key.pid, "1-2-3");
        if (kind == KEY_ACK || kind == KEY_DONE)
            key.round = 42;
        const char *text = text_of(key, "a job/with%odd\n name");
        memset(&back, 0xee, sizeof(back));
        assert_true(key_parse(text, strlen(text), "a job/with%odd\n name", &back));
        assert_memory_equal(&key, &back, sizeof(key));
        assert_int_equal(key_parse(text, strlen(text), "a job", &back), store);
    }
}

static void test_foreign_keys_are_not_taken_for_ours(void **state) {
    (void)state;
    static const char *const foreign[] = {
        "",
        "/rankrun/job",
        "/rankrun/job/",
        "/rankrun/job/" INC,
        "/rankrun/job/" INC "/ack/7/aa",
        "/rankrun/job/" INC "/ack/000000000x/aa",
        "/rankrun/job/" INC "/ack/00000000 0/aa",
        "/rankrun/job/" INC "/ack/",
        "/rankrun/job/" INC "/plan/",
        "/rankrun/job/sum",
        "/rankrun/quarantinf",
        "/rankrun/job/" INC "/s/",
        "/rankrun/job/" INC "/s/aa/bb",
        "/rankrun/job/" INC "/lead/aa",
        "/rankrun/job/" INC "/what/aa",
        "/rankrun/jobs/cur",
        "/rankrun/job/" INC "/s/00112233445566778899aabbccddeeff0",
    };
    struct store_key key;
    for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
        assert_false(key_parse(foreign[i], strlen(foreign[i]), "job", &key));
    static char long_text[KEY_SIZE + 1];
    assert_false(key_parse("/rankrun/job/c\0r", 16, "job", &key));
    memset(long_text, 'x', KEY_SIZE);
    assert_false(key_parse(long_text, KEY_SIZE, "job", &key));
}

static void test_a_run_id_that_is_empty_or_too_long_is_refused(void **state) {
    (void)state;
    char id[RUN_ID_MAX + 2];
    memset(id, '/', sizeof(id));
    id[RUN_ID_MAX + 1] = '\0';
    assert_int_not_equal(key_run_id_check("", NULL), 0);
    assert_int_not_equal(key_run_id_check(id, NULL), 0);
    id[RUN_ID_MAX] = '\0';
    assert_int_equal(key_run_id_check(id, NULL), 0);
    struct store_key ack = {.kind = KEY_ACK, .inc = INC};
    memset(ack.uid, 'f', sizeof(ack.uid) - 1);
    assert_true(strlen(text_of(ack, id)) < KEY_SIZE);
}

static void test_the_lease_follows_from_the_incarnation_and_is_positive(void **state) {
    (void)state;
    assert_int_equal(key_lease("0000000000000000"), 1);
    assert_int_equal(key_lease("00000000000000ff"), 255);
    assert_true(key_lease("ffffffffffffffff") == INT64_MAX);
}

static bool is_of_a_run(const char *text) {
    return key_is_of_a_run(text, strlen(text));
}

static void test_keys_of_whatever_run_are_known_from_others(void **state) {
    (void)state;
    assert_true(is_of_a_run("/rankrun/job/cur"));
    assert_true(is_of_a_run("/rankrun/a%2fb/0123456789abcdef/lead"));
    assert_true(is_of_a_run(
        "/rankrun/job/0123456789abcdef/ack/0000000007/0123456789abcdef0123456789abcdef"));
    assert_true(is_of_a_run(KEY_QUARANTINE_TEXT));
    static const char *const others[] = {"",
                                         "x",
                                         "/rankrun/",
                                         "/rankrun/job",
                                         "/rankrun/job/",
                                         "/rankrun//cur",
                                         "/rankrun/job/curx",
                                         "/rankrun/job/0123456789abcdef/note/x",
                                         "/rankrun/job/0123456789abcdefg/lead",
                                         "/rankrun/job/0123456789abcdef/lead/x"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (is_of_a_run(others[i]))
            fail_msg("%s is none", others[i]);
    assert_int_equal(key_run_length("/rankrun/job/0123", 17), strlen("/rankrun/job/"));
    assert_int_equal(key_run_length("/rankrun/job", 12), 0);
    assert_int_equal(key_run_length("/rankrun//x", 11), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_written_as_the_protocol_says),
        cmocka_unit_test(test_scopes_are_ranges),
        cmocka_unit_test(test_below_takes_all_earlier_rounds_and_not_this_one),
        cmocka_unit_test(test_every_key_is_read_back_as_it_was_written),
        cmocka_unit_test(test_foreign_keys_are_not_taken_for_ours),
        cmocka_unit_test(test_a_run_id_that_is_empty_or_too_long_is_refused),
        cmocka_unit_test(test_the_lease_follows_from_the_incarnation_and_is_positive),
        cmocka_unit_test(test_keys_of_whatever_run_are_known_from_others),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
