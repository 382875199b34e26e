/* Changes: what all checks say of histories in which one record is changed is what they said before.
 *
 *   test_changes --show worker-killed:12   what the changes of record 12 make them say, in full
 *
 * `make verdicts` writes anew what is compared with. */
#include "tests/harness/judge/checks/verdicts_compare.h"

#include <malloc.h>

static void compare_changes(const char *history) {
    struct buf is = {0};
    char name[100];
    snprintf(name, sizeof(name), "changed-%s", history);
    verdicts_of_changes(history, &is);
    compare(name, &is);
    buf_fini(&is);
}

static void test_what_a_changed_record_changes_is_the_same_as_before(void **state) {
    (void)state;
    static const char *const names[] = {"gpu-worker-killed", "node-powered-off", "printed-steps",
                                        "weights", "worker-killed"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        compare_changes(names[i]);
}

static int show(char *what) {
    struct buf out = {0};
    char *line = strchr(what, ':');
    if (!line)
        return 64;
    *line = 0;
    verdicts_of_record(what, strtoul(line + 1, NULL, 10), &out);
    fputs(buf_str(&out), stdout);
    buf_fini(&out);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_changed_record_changes_is_the_same_as_before),
    };
    if (argc == 3 && str_eq(argv[1], "--show"))
        return show(argv[2]);
    fill = argc == 2 && str_eq(argv[1], "--fill");
    mallopt(M_MMAP_THRESHOLD, 1 << 26); /* what one run gives back the next one takes */
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
