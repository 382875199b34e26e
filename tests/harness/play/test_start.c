/* Whose failure ended an undisturbed start, whatever came after it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/play/start.h"

/* A round of two, each with when and how it ended; exit code 0 and no signal: well. */
struct row {
    struct worker workers[2];
};

static struct rounds *rounds_of(struct row *rows, size_t n) {
    static struct round rounds[3];
    static struct round *list[3];
    static struct worker *workers[3][2];
    static struct rounds all;
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++)
            workers[i][k] = &rows[i].workers[k];
        rounds[i] = (struct round){.workers = workers[i], .n = 2};
        list[i] = &rounds[i];
    }
    all = (struct rounds){.v = list, .n = n};
    return &all;
}

#define ENDED(ns, code, signo)                                                                     \
    { .exit_known = true, .exit_ns = (ns), .exit_code = (code), .exit_signal = (signo) }

static void test_who_was_asked_to_end_had_not_failed_first(void **state) {
    (void)state;
    struct row rows[] = {{{ENDED(10, 0, SIGTERM), ENDED(20, 3, 0)}}};
    assert_ptr_equal(start_failed(rounds_of(rows, 1)), &rows[0].workers[1]);
}

/* A late harness: the next round has begun, and its workers are killed with their nodes. */
static void test_what_ends_after_the_failure_is_not_it(void **state) {
    (void)state;
    struct row rows[] = {{{ENDED(10, 0, 0), ENDED(20, 3, 0)}},
                         {{ENDED(30, 0, SIGKILL), ENDED(31, 0, SIGKILL)}}};
    assert_ptr_equal(start_failed(rounds_of(rows, 2)), &rows[0].workers[1]);
}

static void test_a_job_that_ends_well_has_no_failure(void **state) {
    (void)state;
    struct row rows[] = {{{ENDED(10, 0, 0), ENDED(20, 0, 0)}}};
    assert_null(start_failed(rounds_of(rows, 1)));
    assert_null(start_failed(rounds_of(rows, 0)));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_was_asked_to_end_had_not_failed_first),
        cmocka_unit_test(test_what_ends_after_the_failure_is_not_it),
        cmocka_unit_test(test_a_job_that_ends_well_has_no_failure),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
