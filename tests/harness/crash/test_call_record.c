/* Every call by which a directory is changed, as the record has it: spawn_calls. */
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
    "mkdir d 755",
    "create d/file 640",
    "open d/file",
    "write d/file 0+3 abc",
    "write d/file 10+2 de",
    "write d/file 3+3 ijk",
    "write d/file 20+3 ijk",
    "open d/file",
    "write d/file 23+1 z",
    "close d/file",
    "write d/file 6+1 q",
    "truncate d/file 8",
    "truncate d/file 4",
    "sync_range d/file",
    "sync_data d/file",
    "sync d/file",
    "close d/file",
    "close d/file",
    "create much 600",
    "open much",
    "write much 5+1048576 ......",
    "write much 1048581+10 ...xyz",
    "unlink much",
    "mode d/file 700",
    "mode d/file 0",
    "mode d/file 640",
    "mode d 750",
    "create mapped 600",
    "open mapped",
    "truncate mapped 4096",
    "write mapped 0+4096 mapped",
    "sync mapped",
    "close mapped",
    "rename d/file a",
    "link a b",
    "symlink l a",
    "exchange a l",
    "rename b d/c",
    "unlink d/c",
    "mkdir d/e 700",
    "rmdir d/e",
    "sync d",
    "sync .",
    "mkdir x 700",
    "mkdir y 700",
    "symlink here x",
    "create x/f 600",
    "open x/f",
    "close x/f",
    "unlink here",
    "symlink here y",
    "create y/g 600",
    "open y/g",
    "close y/g",
    "open x/f",
    "sync x",
    "rename x z",
    "write z/f 0+1 w",
    "sync z",
    "close z/f",
    "create z/h 600",
    "open z/h",
    "close z/h",
    "create y/k 600",
    "open y/k",
    "close y/k",
    "create k 600",
    "open k",
    "close k",
    "mkdir m 700",
    "mkdir m/n 700",
    "mkdir mm 700",
    "create m/n/0 600",
    "open m/n/0",
    "create m/n/1 600",
    "open m/n/1",
    "create m/n/2 600",
    "open m/n/2",
    "create m/n/3 600",
    "open m/n/3",
    "create m/n/4 600",
    "open m/n/4",
    "create m/n/5 600",
    "open m/n/5",
    "create m/n/6 600",
    "open m/n/6",
    "create m/n/7 600",
    "open m/n/7",
    "create m/n/8 600",
    "open m/n/8",
    "create mm/x 600",
    "open mm/x",
    "rename m o",
    "write o/n/0 0+1 0",
    "write o/n/8 0+1 8",
    "write mm/x 0+1 x",
    "rename o/n/8 o/n/7",
    "write o/n/7 1+1 8",
    "close o/n/0",
    "close o/n/1",
    "close o/n/2",
    "close o/n/3",
    "close o/n/4",
    "close o/n/5",
    "close o/n/6",
    "close o/n/7",
    "close mm/x",
    "create last 600",
    "open last",
    NULL,
};

static void test_every_call_is_recorded_with_what_came_of_it(void **state) {
    char command[512], line[512];
    size_t i = 0;
    (void)state;
    snprintf(command, sizeof(command), "%.*sspawn_calls \"${TMPDIR:-/tmp}/calls\"",
             (int)(strrchr(self, '/') + 1 - self), self);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    while (fgets(line, sizeof(line), out)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "skip", 4) == 0) {
            pclose(out);
            print_message("%s\n", line);
            skip();
        }
        if (!wanted[i] || strcmp(line, wanted[i]) != 0)
            print_message("line %zu: %s\n", i + 1, line);
        assert_non_null(wanted[i]);
        assert_string_equal(line, wanted[i]);
        i++;
    }
    assert_int_equal(pclose(out), 0);
    assert_null(wanted[i]);
}

int main(int argc, char **argv) {
    (void)argc;
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call_is_recorded_with_what_came_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
