/* Altered: what each check says of its planted cases when a record of them is another is what it said
 * before.
 *
 *   test_altered --show "samples: two ranks count the same shard"   all of it, in full
 *
 * `make verdicts` writes anew what is compared with. */
#include "tests/harness/judge/checks/all_cases.h"
#include "tests/harness/judge/checks/case_alterations.h"
#include "tests/harness/judge/checks/verdicts_compare.h"

#include <inttypes.h>
#include <malloc.h>

static void test_what_is_said_of_an_altered_case_is_the_same_as_before(void **state) {
    (void)state;
    struct buf is = {0};
    for (const struct planted_case *c = cases.first; c; c = c->next) {
        struct case_alterations of;
        case_alterations(&of, c, NULL);
        assert_true(of.asked > 0);
        buf_printf(&is, "%s: %s: %zu of %zu otherwise, %016" PRIx64 "\n", c->check, c->name,
                   of.otherwise, of.asked, of.sum);
    }
    compare("altered", &is);
    buf_fini(&is);
}

static int show(const char *what) {
    int shown = 0;
    read_cases(NULL);
    for (const struct planted_case *c = cases.first; c; c = c->next) {
        struct case_alterations of;
        struct buf name = {0}, out = {0};
        buf_printf(&name, "%s: %s", c->check, c->name);
        if (str_eq(buf_str(&name), what)) {
            case_alterations(&of, c, &out);
            fputs(buf_str(&out), stdout);
            shown++;
        }
        buf_fini(&name);
        buf_fini(&out);
    }
    drop_cases(NULL);
    return shown ? 0 : 64;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_of_an_altered_case_is_the_same_as_before),
    };
    if (argc == 3 && str_eq(argv[1], "--show"))
        return show(argv[2]);
    fill = argc == 2 && str_eq(argv[1], "--fill");
    mallopt(M_MMAP_THRESHOLD, 1 << 26); /* what one run gives back the next one takes */
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    return cmocka_run_group_tests(tests, read_cases, drop_cases);
}
