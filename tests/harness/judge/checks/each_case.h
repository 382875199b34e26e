/* each_case: what is said of each planted case when something about it is another, beside what was said before; for a
 * test program that only does this.
 *
 *   --show "samples: two ranks count the same shard"   all of it, in full
 *   --fill                                             writes anew what is compared with */
#pragma once

#include "tests/harness/judge/checks/all_cases.h"
#include "tests/harness/judge/checks/case_alterations.h"
#include "tests/harness/judge/checks/verdicts_compare.h"

#include <inttypes.h>
#include <malloc.h>

typedef void each_case_ask(struct case_alterations *ret, const struct planted_case *c,
                           struct buf *told);

/* Each is asked so often at least, and most of them at all. */
static void each_case_compare(each_case_ask *ask, const char *name, size_t least) {
    struct buf is = {0};
    size_t asked = 0, all = 0;
    for (const struct planted_case *c = cases.first; c; c = c->next) {
        struct case_alterations of;
        ask(&of, c, NULL);
        assert_true(of.asked >= least);
        asked += of.asked > 0;
        all++;
        buf_printf(&is, "%s: %s: %zu of %zu otherwise, %016" PRIx64 "\n", c->check, c->name,
                   of.otherwise, of.asked, of.sum);
    }
    assert_true(asked > all / 2);
    compare(name, &is);
    buf_fini(&is);
}

static int each_case_show(each_case_ask *ask, const char *what) {
    int shown = 0;
    read_cases(NULL);
    for (const struct planted_case *c = cases.first; c; c = c->next) {
        struct case_alterations of;
        struct buf name = {0}, out = {0};
        buf_printf(&name, "%s: %s", c->check, c->name);
        if (str_eq(buf_str(&name), what)) {
            ask(&of, c, &out);
            fputs(buf_str(&out), stdout);
            shown++;
        }
        buf_fini(&name);
        buf_fini(&out);
    }
    drop_cases(NULL);
    return shown ? 0 : 64;
}

/* What main returns; the test calls each_case_compare. */
static int each_case_main(int argc, char **argv, each_case_ask *ask,
                          const struct CMUnitTest *test) {
    const struct CMUnitTest tests[] = {*test};
    if (argc == 3 && str_eq(argv[1], "--show"))
        return each_case_show(ask, argv[2]);
    fill = argc == 2 && str_eq(argv[1], "--fill");
    mallopt(M_MMAP_THRESHOLD, 1 << 26); /* what one run gives back the next one takes */
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    return cmocka_run_group_tests(tests, read_cases, drop_cases);
}
