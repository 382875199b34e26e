/* all_cases: the planted cases of every check, for the tests of one program. */
#pragma once

#include "tests/harness/judge/checks/cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define CASES "tests/harness/judge/checks/cases"

static struct cases cases;

/* For cmocka_run_group_tests. Every file is named after a check. */
static int read_cases(void **state) {
    (void)state;
    struct err err = {0};
    int rc = cases_read_all(&cases, CASES, &err);
    if (rc < 0)
        print_error("%s\n", err.msg);
    return rc;
}

static int drop_cases(void **state) {
    (void)state;
    cases_fini(&cases);
    return 0;
}
