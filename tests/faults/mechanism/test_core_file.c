/* A core that is written of a process: spawn_core. */
#include "base/buf.h"
#include "base/sys/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *self;

static void test_a_core_has_what_is_used_and_not_what_was_asked_to_be_left_out(void **state) {
    char command[512], path[256], line[256] = "";
    const char *tmp = getenv("TMPDIR");
    BUF_FINI struct buf core = {0};
    (void)state;
    snprintf(path, sizeof(path), "%s/core.%d", tmp ? tmp : "/tmp", (int)getpid());
    snprintf(command, sizeof(command), "%.*sspawn_core '%s'", (int)(strrchr(self, '/') + 1 - self),
             self, path);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    if (fgets(line, sizeof(line), out))
        print_message("%s", line);
    int code = pclose(out);
    if (strncmp(line, "skip", 4) == 0) {
        unlink(path);
        skip();
    }
    assert_int_equal(code, 0);
    assert_int_equal(file_read(path, 1 << 30, &core, NULL), 0);
    unlink(path);
    assert_memory_equal(core.data,
                        "\x7f"
                        "ELF",
                        4);
    assert_non_null(memmem(core.data, core.len, "this is kkkk", 12));
    assert_null(memmem(core.data, core.len, "this is llll", 12));
}

int main(int argc, char **argv) {
    (void)argc;
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_core_has_what_is_used_and_not_what_was_asked_to_be_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
