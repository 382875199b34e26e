/* A question that is tried answers, dies or says nothing, and changes nothing of whoever asks. The
 * questions themselves are asked of this host in tests/live/doctor.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/doctor/host_questions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *self;

static void said(const char *experiment, const char *expected) {
    char command[512], line[1000] = "";
    snprintf(command, sizeof(command), "%.*sspawn_host_question %s",
             (int)(strrchr(self, '/') + 1 - self), self, experiment);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    assert_non_null(fgets(line, sizeof(line), out));
    assert_int_equal(pclose(out), 0);
    assert_string_equal(line, expected);
}

static void test_the_answer_of_a_probe_comes_through(void **state) {
    (void)state;
    said("works", "works: it was given here; \n");
    said("lacks", "lacks: it is broken; fix it\n");
}

static void test_a_probe_that_dies_or_says_nothing_lacks(void **state) {
    (void)state;
    said("dies", "lacks: it died while it was tried; look into the kernel's log\n");
    said("silent", "lacks: it died while it was tried; look into the kernel's log\n");
}

static void test_what_a_probe_does_to_itself_stays_with_it(void **state) {
    (void)state;
    said("moves", "works: it was given here; \n");
}

static void test_every_probe_says_what_it_gives(void **state) {
    size_t demo = 0;
    (void)state;
    for (size_t i = 0; host_questions[i]; i++) {
        assert_true(strlen(host_questions[i]->name) < 15);
        assert_true(strlen(host_questions[i]->gives) > 10);
        assert_non_null(host_questions[i]->look);
        demo += host_questions[i]->demo;
    }
    assert_true(demo > 0);
}

int main(int argc, char **argv) {
    (void)argc;
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_answer_of_a_probe_comes_through),
        cmocka_unit_test(test_a_probe_that_dies_or_says_nothing_lacks),
        cmocka_unit_test(test_what_a_probe_does_to_itself_stays_with_it),
        cmocka_unit_test(test_every_probe_says_what_it_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
