/* A job on a stage, on both kinds of isolation: spawn_stage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *self;

static const char *const wanted[] = {
    "ends: exit 7, \"there\"; there made",
    "again: exit 0, \"fresh\"; there ",
    "killed itself: signal 9; there ",
    "late: late; there ",
    "leaves somebody: exit 0, \"off\"; there ",
    "full: not started: no room",
    "is ended: nobody is left",
    "changes what lies beside it: exit 0, \"done\"; there ",
    "nothing is left beside",
    NULL,
};

static void check(const char *kind) {
    char command[512], line[512];
    size_t i = 0;
    snprintf(command, sizeof(command),
             "d=$(mktemp -d) && %.*sspawn_stage %s $d/desk; r=$?; rm -rf $d; exit $r",
             (int)(strrchr(self, '/') + 1 - self), self, kind);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    while (fgets(line, sizeof(line), out)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "skip", 4) == 0) {
            pclose(out);
            print_message("%s\n", line);
            skip();
        }
        if (wanted[i] && strncmp(wanted[i], "changes", 7) == 0 && strcmp(kind, "processes") == 0)
            i++; /* there it would be for real */
        assert_non_null(wanted[i]);
        assert_string_equal(line, wanted[i]);
        i++;
    }
    assert_int_equal(pclose(out), 0);
    assert_null(wanted[i]);
}

static void test_a_job_in_namespaces_leaves_nothing(void **state) {
    (void)state;
    check("namespaces");
}

static void test_a_job_among_processes_leaves_nothing(void **state) {
    (void)state;
    check("processes");
}

int main(int argc, char **argv) {
    (void)argc;
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_in_namespaces_leaves_nothing),
        cmocka_unit_test(test_a_job_among_processes_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
