/* Connections that are seen before they begin, and cut at their sockets: spawn_watched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>
#include <string.h>

static const char *self;

static void experiment(const char *name) {
    char command[512], said[512] = "";
    snprintf(command, sizeof(command), "%.*sspawn_watched %s", (int)(strrchr(self, '/') + 1 - self),
             self, name);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    if (!fgets(said, sizeof(said), out))
        said[0] = '\0';
    pclose(out);
    if (strncmp(said, "skip", 4) == 0) {
        print_message("%s", said);
        skip();
    }
    assert_string_equal(said, "ok\n");
}

static void test_a_call_waits_is_told_and_goes_on(void **state) {
    (void)state;
    experiment("passes");
}

static void test_a_call_can_be_cut_before_it_begins_and_mended(void **state) {
    (void)state;
    experiment("is-cut");
}

int main(int argc, char **argv) {
    (void)argc;
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_waits_is_told_and_goes_on),
        cmocka_unit_test(test_a_call_can_be_cut_before_it_begins_and_mended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
