/* Whether another run fails as the recorded one did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "harness/verbs/shrink/failure.h"

#include <string.h>

struct row {
    const char *check;
    enum finding_class class;
    enum finding_status status;
    const char *seen;
};

static void make(struct verdict *v, int exit_code, const struct row *rows) {
    *v = (struct verdict){.exit_code = exit_code};
    for (; rows->check; rows++) {
        struct finding *f = &v->v[v->n++];
        *f = (struct finding){.check = rows->check, .class = rows->class, .status = rows->status};
        str_copy(f->seen, sizeof(f->seen), rows->seen ? rows->seen : "");
    }
}

static enum comparison_answer compare(const struct found_failure *f, int exit_code,
                                      const struct row *rows, const char *why) {
    static struct verdict v;
    struct buf said = {0};
    make(&v, exit_code, rows);
    enum comparison_answer answer = failure_compare(f, &v, &said);
    assert_string_equal(buf_str(&said), why);
    buf_fini(&said);
    return answer;
}

#define ROWS(...)                                                                                  \
    (const struct row[]) {                                                                         \
        __VA_ARGS__, {                                                                             \
            0                                                                                      \
        }                                                                                          \
    }
#define FAILED(name, class)                                                                        \
    { name, CLASS_##class, FINDING_FAIL, "" }
#define PASSED(name, class)                                                                        \
    { name, CLASS_##class, FINDING_PASS, "" }
#define UNKNOWN(name, class)                                                                       \
    { name, CLASS_##class, FINDING_UNKNOWN, "" }

static const char *ranks[] = {"ranks", NULL};
static const char *ranks_and_samples[] = {"ranks", "samples", NULL};

static void test_it_fails_the_same_when_all_that_must_fail_does_and_nothing_new(void **state) {
    (void)state;
    struct found_failure f = {.checks = ranks, .all = ranks_and_samples, .way = ""};
    assert_int_equal(compare(&f, 1, ROWS(FAILED("ranks", INVARIANT)), ""), FAILS_SAME);
    assert_int_equal(
        compare(&f, 1, ROWS(FAILED("ranks", INVARIANT), FAILED("samples", INVARIANT)), ""),
        FAILS_SAME);
    assert_int_equal(
        compare(&f, 1, ROWS(FAILED("ranks", INVARIANT), FAILED("budget", INVARIANT)), "budget"),
        FAILS_OTHERWISE);
    assert_int_equal(compare(&f, 1, ROWS(FAILED("samples", INVARIANT)), "samples"),
                     FAILS_OTHERWISE);
    assert_int_equal(compare(&f, 0, ROWS(PASSED("ranks", INVARIANT)), ""), PASSES);
}

static void test_all_that_must_fail_is_more_than_one_of_them(void **state) {
    (void)state;
    struct found_failure f = {.checks = ranks_and_samples, .all = ranks_and_samples, .way = ""};
    assert_int_equal(
        compare(&f, 1, ROWS(FAILED("ranks", INVARIANT), PASSED("samples", INVARIANT)), "ranks"),
        FAILS_OTHERWISE);
}

static void test_a_fault_that_did_not_happen_leaves_it_open(void **state) {
    (void)state;
    struct found_failure f = {.checks = ranks, .all = ranks, .way = ""};
    const struct row *rows = ROWS(FAILED("ranks", INVARIANT), FAILED("fired", FAULTS));
    assert_int_equal(compare(&f, 1, rows, "fired"), INCONCLUSIVE);
    f.unfired = true; /* as in the recorded run */
    assert_int_equal(compare(&f, 1, rows, ""), FAILS_SAME);
    assert_int_equal(compare(&f, 2, ROWS(UNKNOWN("ranks", INVARIANT)), "ranks"), INCONCLUSIVE);
}

static void test_a_job_that_ends_wrongly_in_another_way_fails_otherwise(void **state) {
    (void)state;
    static const char *outcome[] = {"outcome", NULL};
    struct found_failure f = {.checks = outcome, .all = outcome, .way = "it failed "};
    const struct row same = {"outcome", CLASS_EXPECT, FINDING_FAIL,
                             "it failed (agents ended: n0 1)"};
    const struct row other = {"outcome", CLASS_EXPECT, FINDING_FAIL,
                              "no one outcome (agents ended: n0 still ran)"};
    assert_int_equal(compare(&f, 1, ROWS(same), ""), FAILS_SAME);
    assert_int_equal(compare(&f, 1, ROWS(other), "outcome"), FAILS_OTHERWISE);
}

static void test_a_broken_or_interrupted_run_is_no_answer(void **state) {
    (void)state;
    struct found_failure f = {.checks = ranks, .all = ranks, .way = ""};
    const struct row broken = {"harness_health", CLASS_HARNESS, FINDING_FAIL, "late"};
    assert_int_equal(
        compare(&f, 3, ROWS(FAILED("ranks", INVARIANT), broken), "harness_health: late"), BROKEN);
    assert_int_equal(compare(&f, 130, ROWS(FAILED("ranks", INVARIANT)), ""), INTERRUPTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_fails_the_same_when_all_that_must_fail_does_and_nothing_new),
        cmocka_unit_test(test_all_that_must_fail_is_more_than_one_of_them),
        cmocka_unit_test(test_a_fault_that_did_not_happen_leaves_it_open),
        cmocka_unit_test(test_a_job_that_ends_wrongly_in_another_way_fails_otherwise),
        cmocka_unit_test(test_a_broken_or_interrupted_run_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
