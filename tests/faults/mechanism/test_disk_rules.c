#include "faults/mechanism/disk_rules.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static const struct disk_rule *by;
static int64_t part;

static enum disk_verdict ask_all(struct disk_rule_state *s, size_t n,
                                 const struct disk_request *q) {
    struct disk_ruling r = disk_rules_decide(s, n, q);
    by = r.rule;
    part = r.bytes;
    return r.verdict;
}

static enum disk_verdict ask(struct disk_rule_state *s, size_t n, unsigned does, const char *path,
                             const char *to, int64_t bytes) {
    return ask_all(s, n, &(struct disk_request){does, path, to, bytes, bytes, false});
}

/* A write of which a part may be made. */
static enum disk_verdict write_to(struct disk_rule_state *s, int64_t bytes, int64_t grows) {
    return ask_all(s, 1, &(struct disk_request){DISK_DOES_WRITE, "/s/a", "", bytes, grows, true});
}

static struct disk_rule_state rule(unsigned does, const char *pattern, int error) {
    struct disk_rule_state s = {
        .rule = {.does = does, .root = "/s", .nth = 1, .error = error, .room = -1}};
    strcpy(s.rule.pattern, pattern);
    return s;
}

static void test_the_nth_of_its_kind_and_path_fails_and_none_else(void **state) {
    (void)state;
    struct disk_rule_state s = rule(DISK_DOES_WRITE, "ckpt/*.pt", EIO);
    s.rule.nth = 2;
    s.rule.times = 1;
    assert_int_equal(ask(&s, 1, DISK_DOES_WRITE, "/s/ckpt/a.pt", "", 1), DISK_PASSES);
    assert_int_equal(ask(&s, 1, DISK_DOES_SYNC, "/s/ckpt/a.pt", "", 0), DISK_PASSES);
    assert_int_equal(ask(&s, 1, DISK_DOES_WRITE, "/s/ckpt/a.tmp", "", 1), DISK_PASSES);
    assert_int_equal(ask(&s, 1, DISK_DOES_WRITE, "/t/ckpt/a.pt", "", 1), DISK_PASSES);
    assert_int_equal(ask(&s, 1, DISK_DOES_WRITE, "/s/ckpt/d/a.pt", "", 1), DISK_PASSES);
    assert_int_equal(ask(&s, 1, DISK_DOES_WRITE, "/s/ckpt/b.pt", "", 1), DISK_FAILS);
    assert_true(by == &s.rule && by->error == EIO);
    assert_int_equal(ask(&s, 1, DISK_DOES_WRITE, "/s/ckpt/b.pt", "", 1), DISK_PASSES);
}

static void test_two_stars_are_all_that_lies_below(void **state) {
    (void)state;
    struct disk_rule_state s = rule(DISK_DOES_ALL, "**", EROFS), t = rule(DISK_DOES_ALL, "a/**", 1);
    assert_int_equal(ask(&s, 1, DISK_DOES_READ, "/s/x/y/z", "", 0), DISK_FAILS);
    assert_int_equal(ask(&s, 1, DISK_DOES_READ, "/sx/y", "", 0), DISK_PASSES);
    assert_int_equal(ask(&s, 1, DISK_DOES_READ, "/s", "", 0), DISK_PASSES);
    assert_int_equal(ask(&t, 1, DISK_DOES_READ, "/s/a/y/z", "", 0), DISK_FAILS);
    assert_int_equal(ask(&t, 1, DISK_DOES_READ, "/s/b/y", "", 0), DISK_PASSES);
}

static void test_a_rename_is_meant_by_either_name(void **state) {
    (void)state;
    struct disk_rule_state s = rule(DISK_DOES_RENAME, "latest", ESTALE);
    assert_int_equal(ask(&s, 1, DISK_DOES_RENAME, "/s/.tmp", "/s/latest", 0), DISK_FAILS);
    assert_int_equal(ask(&s, 1, DISK_DOES_RENAME, "/s/latest", "/s/old", 0), DISK_FAILS);
    assert_int_equal(ask(&s, 1, DISK_DOES_RENAME, "/s/a", "/s/b", 0), DISK_PASSES);
}

static void test_a_full_disk_takes_what_there_is_room_for(void **state) {
    (void)state;
    struct disk_rule_state s = rule(DISK_DOES_WRITE, "**", ENOSPC);
    s.rule.room = 100;
    assert_int_equal(ask(&s, 1, DISK_DOES_WRITE, "/s/a", "", 60), DISK_PASSES);
    assert_int_equal(ask(&s, 1, DISK_DOES_WRITE, "/s/b", "", 41), DISK_FAILS);
    assert_int_equal(ask(&s, 1, DISK_DOES_WRITE, "/s/b", "", 40), DISK_PASSES);
    assert_int_equal(ask(&s, 1, DISK_DOES_WRITE, "/s/b", "", 1), DISK_FAILS);
}

static void test_a_full_disk_writes_what_still_fits(void **state) {
    (void)state;
    struct disk_rule_state s = rule(DISK_DOES_WRITE, "**", ENOSPC);
    s.rule.room = 100;
    assert_int_equal(write_to(&s, 60, 60), DISK_PASSES);
    assert_int_equal(disk_rules_room(&s, 1), 40);
    assert_int_equal(write_to(&s, 60, 50), DISK_CUTS); /* 10 of them are there already */
    assert_int_equal(part, 50);
    assert_int_equal(write_to(&s, 10, 10), DISK_FAILS);
    assert_int_equal(write_to(&s, 10, 0), DISK_PASSES);
    assert_int_equal(write_to(&s, 10, 4), DISK_CUTS);
    assert_int_equal(part, 6);
    disk_rules_freed(&s, 1, "/t/a", 30);
    assert_int_equal(disk_rules_room(&s, 1), 0);
    disk_rules_freed(&s, 1, "/s/a", 30);
    assert_int_equal(disk_rules_room(&s, 1), 30);
    assert_int_equal(write_to(&s, 30, 30), DISK_PASSES);
    s.rule.room = -1;
    assert_int_equal(disk_rules_room(&s, 1), -1);
}

static void test_of_a_write_a_part_is_made(void **state) {
    (void)state;
    struct disk_rule_state s = rule(DISK_DOES_WRITE, "**", 0);
    s.rule.at_most = 10;
    s.rule.nth = 2;
    s.rule.times = 1;
    assert_int_equal(write_to(&s, 10, 10), DISK_PASSES);
    assert_int_equal(ask(&s, 1, DISK_DOES_WRITE, "/s/a", "", 11), DISK_PASSES); /* a page */
    assert_int_equal(write_to(&s, 11, 0), DISK_PASSES);
    assert_int_equal(write_to(&s, 11, 0), DISK_CUTS);
    assert_int_equal(part, 10);
    assert_int_equal(write_to(&s, 11, 0), DISK_PASSES);
}

static void test_a_rule_survives_its_message(void **state) {
    (void)state;
    struct err err = {0};
    struct arena arena = {0};
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    struct disk_rule got, all = {.does = DISK_DOES_SYNC,
                                 .pattern = "a/\"*",
                                 .nth = 3,
                                 .times = 4,
                                 .error = EROFS,
                                 .delay_ns = 5,
                                 .stuck = true,
                                 .room = 0,
                                 .at_most = 6,
                                 .late_ns = 7,
                                 .late_opens = true,
                                 .id = 8};
    json_object(&w, NULL);
    disk_rule_put(&all, &w);
    json_end_object(&w);
    disk_rule_take(json_parse(&arena, buf_str(&text), text.len, &err), &got);
    assert_true(disk_rule_same(&all, &got));
    assert_int_equal(got.id, 8);
    arena_fini(&arena);
}

static void test_the_first_rule_that_strikes_decides(void **state) {
    (void)state;
    struct disk_rule_state s[] = {rule(DISK_DOES_WRITE, "a", 0), rule(DISK_DOES_WRITE, "**", 0),
                                  rule(DISK_DOES_SYNC, "**", 0)};
    s[0].rule.stuck = true;
    s[0].rule.times = 1;
    s[1].rule.delay_ns = 5;
    s[2].rule.error = EIO;
    assert_int_equal(ask(s, 3, DISK_DOES_WRITE, "/s/a", "", 1), DISK_STICKS);
    assert_int_equal(ask(s, 3, DISK_DOES_WRITE, "/s/a", "", 1), DISK_WAITS);
    assert_int_equal(ask(s, 3, DISK_DOES_SYNC, "/s/a", "", 0), DISK_FAILS);
    assert_int_equal(s[2].done, 1);
}

static void test_kinds_are_read_by_their_words(void **state) {
    (void)state;
    unsigned does;
    struct err err = {0};
    assert_int_equal(disk_does_read("write/fsync", &does, &err), 0);
    assert_int_equal(does, DISK_DOES_WRITE | DISK_DOES_SYNC);
    assert_int_equal(disk_does_read("change", &does, &err), 0);
    assert_true(does & DISK_DOES_ATTRIBUTES);
    assert_false(does & (DISK_DOES_READ | DISK_DOES_READ_OPEN | DISK_DOES_SYNC));
    assert_int_equal(disk_does_read("any", &does, &err), 0);
    assert_int_equal(does, DISK_DOES_ALL);
    static const char *const odd[] = {"", "writes", "write/", "/write", "write,fsync", NULL};
    for (const char *const *p = odd; *p; p++) {
        assert_int_equal(disk_does_read(*p, &does, &err), -EINVAL);
        assert_non_null(strstr(err.msg, *p));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_nth_of_its_kind_and_path_fails_and_none_else),
        cmocka_unit_test(test_two_stars_are_all_that_lies_below),
        cmocka_unit_test(test_a_rename_is_meant_by_either_name),
        cmocka_unit_test(test_a_full_disk_takes_what_there_is_room_for),
        cmocka_unit_test(test_a_full_disk_writes_what_still_fits),
        cmocka_unit_test(test_of_a_write_a_part_is_made),
        cmocka_unit_test(test_a_rule_survives_its_message),
        cmocka_unit_test(test_the_first_rule_that_strikes_decides),
        cmocka_unit_test(test_kinds_are_read_by_their_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
