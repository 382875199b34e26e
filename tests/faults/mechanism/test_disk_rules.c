#include "faults/mechanism/disk_rules.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static const struct disk_rule *by;

static enum disk_verdict ask(struct disk_rule_state *s, size_t n, unsigned does, const char *path,
                             const char *to, int64_t bytes) {
    const struct disk_request q = {does, path, to, bytes};
    return disk_rules_decide(s, n, &q, &by);
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
        cmocka_unit_test(test_the_first_rule_that_strikes_decides),
        cmocka_unit_test(test_kinds_are_read_by_their_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
