/* Lost: of a run that nobody has seen as it was, nothing is said to have failed that need not have,
 * and it does not pass either (lost.txt). */
#include "tests/harness/judge/checks/cases.h"
#include "tests/harness/judge/checks/planted.h"

static struct cases cases;

static int read_cases(void **state) {
    (void)state;
    struct err err = {0};
    int rc = cases_read(&cases, "tests/harness/judge/checks/lost.txt", NULL, &err);
    if (rc < 0)
        print_error("%s\n", err.msg);
    return rc;
}

static int drop_cases(void **state) {
    (void)state;
    cases_fini(&cases);
    return 0;
}

static void test_what_nobody_saw_neither_fails_nor_passes(void **state) {
    (void)state;
    for (const struct planted_case *c = cases.first; c; c = c->next) {
        struct scenario s = planted_scenario(c->history);
        struct history h;
        struct verdict v;
        planted_load(&h, c->history, c->edits);
        verdict_judge(&v, &(struct trial){.scenario = &s, .history = &h});
        const struct finding *f = finding_of(&v, c->check);
        if (f->status != c->status || !strstr(f->seen, c->seen) || v.exit_code != c->exit_code)
            fail_msg("%s: %s: %s %s, \"%s\", exit %d; expected %s, \"%s\", exit %d", c->place,
                     c->name, f->check, finding_status_name(f->status), f->seen, v.exit_code,
                     finding_status_name(c->status), c->seen, c->exit_code);
        history_fini(&h);
    }
}

/* A program of the user's reads the same history. */
static void test_an_own_check_does_not_fail_a_run_that_nobody_saw(void **state) {
    (void)state;
    static const struct edit none[1];
    const struct planted_case *away = cases.first; /* and all else is well */
    const struct finding own = {
        .check = "own", .class = CLASS_EXPECT, .status = FINDING_FAIL, .seen = "3 of 4"};
    for (int lost = 0; lost < 2; lost++) {
        struct scenario s = planted_scenario(away->history);
        struct history h;
        struct verdict v;
        planted_load(&h, away->history, lost ? away->edits : none);
        verdict_judge(&v, &(struct trial){.scenario = &s, .history = &h});
        verdict_add(&v, &h, own);
        assert_int_equal(v.exit_code, lost ? 2 : 1);
        assert_non_null(strstr(verdict_find(&v, "own")->seen, "3 of 4"));
        history_fini(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_nobody_saw_neither_fails_nor_passes),
        cmocka_unit_test(test_an_own_check_does_not_fail_a_run_that_nobody_saw),
    };
    return cmocka_run_group_tests(tests, read_cases, drop_cases);
}
