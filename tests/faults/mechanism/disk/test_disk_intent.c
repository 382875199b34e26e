#include "faults/mechanism/disk/disk_intent.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

static enum disk_intent intent(int call, unsigned flags) {
    char line[200];
    snprintf(line, sizeof(line), "%d 0x5 0x7ffe1000 0x%x 0x0 0x0 0x0 0x7ffe0000 0x7f000000\n", call,
             flags);
    return disk_intent_read(line);
}

static void test_who_looks_gets_what_he_is_told(void **state) {
    (void)state;
    assert_int_equal(intent(SYS_newfstatat, 0), DISK_LOOKS);
    assert_int_equal(intent(SYS_statx, 0), DISK_LOOKS);
    assert_int_equal(intent(SYS_faccessat, 0), DISK_LOOKS);
    assert_int_equal(intent(SYS_readlinkat, 0), DISK_LOOKS);
}

static void test_who_opens_without_making_opens(void **state) {
    (void)state;
    assert_int_equal(intent(SYS_openat, O_RDONLY), DISK_OPENS);
    assert_int_equal(intent(SYS_openat, O_WRONLY | O_CREAT), DISK_INTENT_OTHER);
    assert_int_equal(intent(SYS_execve, 0), DISK_OPENS);
}

static void test_what_changes_or_cannot_be_read_is_neither(void **state) {
    (void)state;
    assert_int_equal(intent(SYS_unlinkat, 0), DISK_INTENT_OTHER);
    assert_int_equal(intent(SYS_renameat2, 0), DISK_INTENT_OTHER);
    static const char *const odd[] = {"",  "running\n", "-1 0x7ffe0000 0x7f000000\n",
                                      "x", "262",       NULL};
    for (const char *const *p = odd; *p; p++)
        assert_int_equal(disk_intent_read(*p), DISK_INTENT_OTHER);
    assert_int_equal(disk_intent_of(0), DISK_INTENT_OTHER);
    assert_int_equal(disk_intent_of(getpid()),
                     DISK_INTENT_OTHER); /* it reads, and waits for nobody */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_looks_gets_what_he_is_told),
        cmocka_unit_test(test_who_opens_without_making_opens),
        cmocka_unit_test(test_what_changes_or_cannot_be_read_is_neither),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
