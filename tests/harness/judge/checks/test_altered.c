/* Altered: what each check says of its planted cases when a record of them is another is what it said
 * before. */
#include "tests/harness/judge/checks/each_case.h"

static void test_what_is_said_of_an_altered_case_is_the_same_as_before(void **state) {
    (void)state;
    each_case_compare(case_alterations, "altered", 1);
}

int main(int argc, char **argv) {
    const struct CMUnitTest test =
        cmocka_unit_test(test_what_is_said_of_an_altered_case_is_the_same_as_before);
    return each_case_main(argc, argv, case_alterations, &test);
}
