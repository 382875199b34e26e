/* Verdicts: what all checks say of every history and every planted case is, word for word, what was
 * read and found right before. `make verdicts` writes it anew. */
#include "tests/harness/judge/checks/all_cases.h"
#include "tests/harness/judge/checks/verdicts_compare.h"

#include <glob.h>

static void test_what_is_said_of_each_history_is_the_same_word_for_word(void **state) {
    (void)state;
    struct buf is = {0};
    verdicts_of_histories(&is);
    compare("histories", &is);
    buf_fini(&is);
}

static void test_what_is_said_of_each_case_is_the_same_word_for_word(void **state) {
    (void)state;
    glob_t g = {0};
    assert_int_equal(glob(CASES "/*.txt", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        struct buf is = {0};
        char name[100];
        const char *file = strrchr(g.gl_pathv[i], '/') + 1;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(file, "."), file);
        verdicts_of_cases(&cases, g.gl_pathv[i], &is);
        assert_true(is.len > 0);
        compare(name, &is);
        buf_fini(&is);
    }
    globfree(&g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_of_each_history_is_the_same_word_for_word),
        cmocka_unit_test(test_what_is_said_of_each_case_is_the_same_word_for_word),
    };
    fill = argc == 2 && str_eq(argv[1], "--fill");
    return cmocka_run_group_tests(tests, read_cases, drop_cases);
}
