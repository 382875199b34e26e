/* The domain of --sandbox: what is asked of Landlock of each version, by the kernel's numbers
 * (linux/landlock.h), and what becomes of each refusal. The system calls are the test's. */
#include "agent/workers/domain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    long version;
    long refused; /* this call gives EPERM; 0: none */
    int made, ruled, entered;
    uint64_t made_of[3], allowed;
    int rules; /* the descriptor that was given */
    size_t size;
    struct stat beneath;
} kernel;

static long refuse(void) {
    errno = EPERM;
    return -1;
}

/* As landlock_create_ruleset(2), landlock_add_rule(2) and landlock_restrict_self(2). */
static long test_syscall(long number, ...) {
    va_list args;
    long ret = 0;
    va_start(args, number);
    if (number == SYS_landlock_create_ruleset) {
        const void *what = va_arg(args, const void *);
        kernel.size = va_arg(args, size_t);
        if (!what) {
            assert_int_equal(va_arg(args, int), 1);
            ret = kernel.version;
        } else if (kernel.refused == number) {
            ret = refuse();
        } else {
            assert_int_equal(kernel.size, sizeof(kernel.made_of));
            memcpy(kernel.made_of, what, sizeof(kernel.made_of));
            assert_int_equal(va_arg(args, int), 0);
            ret = kernel.rules = open("/dev/null", O_RDONLY | O_CLOEXEC);
            kernel.made++;
        }
    } else if (number == SYS_landlock_add_rule) {
        assert_int_equal(va_arg(args, int), kernel.rules);
        assert_int_equal(va_arg(args, int), 1);
        const char *rule = va_arg(args, const char *);
        int32_t directory;
        memcpy(&kernel.allowed, rule, sizeof(kernel.allowed));
        memcpy(&directory, rule + sizeof(kernel.allowed), sizeof(directory));
        assert_int_equal(fstat(directory, &kernel.beneath), 0);
        assert_int_equal(va_arg(args, int), 0);
        kernel.ruled++;
        ret = kernel.refused == number ? refuse() : 0;
    } else {
        assert_int_equal(number, SYS_landlock_restrict_self);
        assert_int_equal(va_arg(args, int), kernel.rules);
        assert_int_equal(va_arg(args, int), 0);
        kernel.entered++;
        ret = kernel.refused == number ? refuse() : 0;
    }
    va_end(args);
    return ret;
}

#define syscall test_syscall
#include "agent/workers/domain.c"
#undef syscall

static void set_kernel(long version, long refused) {
    memset(&kernel, 0, sizeof(kernel));
    kernel.version = version;
    kernel.refused = refused;
    kernel.rules = -1;
}

static void test_how_far_a_domain_reaches_depends_on_the_version(void **state) {
    (void)state;
    static const struct {
        long version;
        enum domain_reach reach;
    } rows[] = {{-1, DOMAIN_NONE},  {0, DOMAIN_NONE},  {1, DOMAIN_NONE}, {2, DOMAIN_MEMORY},
                {5, DOMAIN_MEMORY}, {6, DOMAIN_WHOLE}, {7, DOMAIN_WHOLE}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        set_kernel(rows[i].version, 0);
        assert_int_equal(domain_reach(), rows[i].reach);
    }
}

/* To make devices (bits 6 and 11) and, but for all of it, to rename (13); sockets and signals are
 * bits 0 and 1 of the scopes. All that is opened is closed again. */
static void test_exactly_that_much_is_forbidden(void **state) {
    (void)state;
    struct stat root;
    assert_int_equal(stat("/", &root), 0);
    for (long version = 2; version <= 7; version++) {
        struct err err = {0};
        set_kernel(version, 0);
        int before = dup(0);
        close(before);
        assert_int_equal(domain_enter(&err), 0);
        assert_int_equal(kernel.made + kernel.ruled + kernel.entered, 3);
        assert_int_equal(kernel.made_of[0], 0x2840);
        assert_int_equal(kernel.made_of[1], 0);
        assert_int_equal(kernel.made_of[2], version < 6 ? 0 : 3);
        assert_int_equal(kernel.allowed, 0x2000);
        assert_int_equal(kernel.beneath.st_ino, root.st_ino);
        assert_int_equal(kernel.beneath.st_dev, root.st_dev);
        int after = dup(0);
        close(after);
        assert_int_equal(after, before);
    }
}

static void test_where_there_is_none_nothing_is_entered(void **state) {
    (void)state;
    struct err err = {0};
    for (long version = -1; version < 2; version++) {
        set_kernel(version, 0);
        assert_int_equal(domain_enter(&err), 0);
        assert_int_equal(kernel.made + kernel.ruled + kernel.entered, 0);
    }
}

static void test_each_refusal_of_the_kernel_is_told(void **state) {
    (void)state;
    static const long refused[] = {SYS_landlock_create_ruleset, SYS_landlock_add_rule,
                                   SYS_landlock_restrict_self};
    for (size_t i = 0; i < 3; i++) {
        struct err err = {0};
        set_kernel(6, refused[i]);
        assert_int_equal(domain_enter(&err), -EPERM);
        assert_string_equal(err.msg, "--sandbox: enter a Landlock domain: Operation not permitted");
        assert_int_equal(kernel.entered, i == 2);
        assert_int_equal(kernel.ruled, i > 0);
        if (kernel.rules >= 0)
            assert_int_equal(fcntl(kernel.rules, F_GETFD), -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_far_a_domain_reaches_depends_on_the_version),
        cmocka_unit_test(test_exactly_that_much_is_forbidden),
        cmocka_unit_test(test_where_there_is_none_nothing_is_entered),
        cmocka_unit_test(test_each_refusal_of_the_kernel_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
