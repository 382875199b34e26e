/* Each experiment is a child of its own: a sandbox is never left. */
#include "agent/workers/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* The same on every architecture; older C libraries have no names. */
enum { IO_URING_SETUP = 425, CLONE3 = 435, MOUNT_SETATTR = 442, OPEN_TREE_ATTR = 467 };

static struct buf filter;

static int make(void **state) {
    struct err err = {0};
    (void)state;
    if (sandbox_make(&filter, &err) == 0)
        return 0;
    print_error("%s\n", err.msg);
    return -1;
}

static int unmake(void **state) {
    (void)state;
    buf_fini(&filter);
    return 0;
}

/* As confinement does. */
static bool enter(void) {
    struct sock_fprog program = {(unsigned short)(filter.len / sizeof(struct sock_filter)),
                                 (struct sock_filter *)(uintptr_t)filter.data};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

/* What experiment returns in a child that has entered the sandbox. */
static int in_sandbox(int (*experiment)(void)) {
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(enter() ? experiment() : 99);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Arguments that would do nothing: without the filter the kernel finds another fault with them. */
static int refused_calls(void) {
    static const long numbers[] = {
        SYS_ptrace,        SYS_init_module, SYS_finit_module, SYS_kexec_load, SYS_bpf,
        SYS_reboot,        SYS_mount,       SYS_pivot_root,   SYS_chroot,     SYS_setns,
        SYS_unshare,       SYS_swapon,      SYS_sethostname,  SYS_keyctl,     SYS_open_by_handle_at,
        SYS_fanotify_init, SYS_userfaultfd, IO_URING_SETUP,   MOUNT_SETATTR,  OPEN_TREE_ATTR};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (syscall(numbers[i], -1L, -1L, -1L, -1L, -1L) != -1 || errno != EPERM)
            return 1 + (int)i;
    return 0;
}

/* With arguments that the kernel would find another fault with, or do nothing for. */
static const struct {
    long number, args[4];
    int error; /* of the filter */
} partly[] = {
    {SYS_clone, {CLONE_NEWUSER | CLONE_THREAD}, EPERM},
    {SYS_clone, {CLONE_NEWNS | CLONE_FS}, EPERM},
    {SYS_clone, {CLONE_NEWNET | CLONE_THREAD}, EPERM},
    {SYS_clone, {CLONE_NEWPID | CLONE_THREAD}, EPERM},
    {SYS_clone, {CLONE_NEWIPC | CLONE_THREAD}, EPERM},
    {SYS_clone, {CLONE_NEWUTS | CLONE_THREAD}, EPERM},
    {SYS_clone, {CLONE_NEWCGROUP | CLONE_THREAD}, EPERM},
    {CLONE3, {0, 0}, ENOSYS},
    {SYS_mknodat, {-1, 0, S_IFCHR | 0600, 0x103}, EPERM},
    {SYS_mknodat, {-1, 0, S_IFBLK | 0600, 0x103}, EPERM},
    {SYS_mknodat, {-1, 0, S_IFBLK | 0600 | 1L << 32, 0x103}, EPERM},
    {SYS_ioctl, {-1, TIOCSTI, 0}, EPERM},
    {SYS_ioctl, {-1, TIOCSTI | 1L << 32, 0}, EPERM},
    {SYS_ioctl, {-1, TIOCLINUX, 0}, EPERM},
    {SYS_ioctl, {-1, TIOCSETD, 0}, EPERM},
    {SYS_prlimit64, {1, RLIMIT_NOFILE, 1, 0}, EPERM},
    /* and what the same calls are for */
    {SYS_clone, {CLONE_THREAD}, EINVAL},
    {SYS_mknodat, {-1, 0, S_IFIFO | 0600, 0}, EFAULT},
    {SYS_mknodat, {-1, 0, S_IFREG | 0600, 0}, EFAULT},
    {SYS_ioctl, {-1, TIOCGWINSZ, 0}, EBADF},
    {SYS_prlimit64, {0, RLIMIT_NOFILE, 1, 0}, EFAULT},
};

static int partly_refused_calls(void) {
    for (size_t i = 0; i < sizeof(partly) / sizeof(*partly); i++) {
        const long *a = partly[i].args;
        if (syscall(partly[i].number, a[0], a[1], a[2], a[3], 0L) != -1 || errno != partly[i].error)
            return 1 + (int)i;
    }
    return 0;
}

static int ordinary_calls(void) {
    char a[4] = "abc", b[4] = "";
    struct iovec to = {b, 4}, from = {a, 4};
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, b, 1) != 1 || getpid() <= 0)
        return 1;
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 4 || strcmp(b, "abc") != 0)
        return 2;
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 3;
}

static int child_of_it(void) {
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == -1 && errno == EPERM ? 0 : 1);
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

static void test_what_no_worker_needs_is_refused(void **state) {
    (void)state;
    assert_int_equal(in_sandbox(refused_calls), 0);
}

static void test_calls_are_refused_by_what_they_are_asked(void **state) {
    (void)state;
    assert_int_equal(in_sandbox(partly_refused_calls), 0);
}

static void test_what_workers_do_goes_on(void **state) {
    (void)state;
    assert_int_equal(in_sandbox(ordinary_calls), 0);
}

static void test_a_child_of_a_worker_is_in_it_too(void **state) {
    (void)state;
    assert_int_equal(in_sandbox(child_of_it), 0);
}

static void test_every_call_of_the_list_has_a_name_of_its_own(void **state) {
    (void)state;
    const char *const *names = sandbox_refused();
    for (size_t i = 0; names[i]; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_no_worker_needs_is_refused),
        cmocka_unit_test(test_calls_are_refused_by_what_they_are_asked),
        cmocka_unit_test(test_what_workers_do_goes_on),
        cmocka_unit_test(test_a_child_of_a_worker_is_in_it_too),
        cmocka_unit_test(test_every_call_of_the_list_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
