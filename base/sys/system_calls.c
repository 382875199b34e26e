#include "base/sys/system_calls.h"

#include "base/str.h"

#include <stddef.h>
#include <sys/syscall.h>

/* Newer machines never had some of the older calls, and older headers lack some of the newer. */
#ifndef SYS_access
#define SYS_access (-1)
#endif
#ifndef SYS_chmod
#define SYS_chmod (-1)
#endif
#ifndef SYS_chown
#define SYS_chown (-1)
#endif
#ifndef SYS_clone3
#define SYS_clone3 (-1)
#endif
#ifndef SYS_close_range
#define SYS_close_range (-1)
#endif
#ifndef SYS_creat
#define SYS_creat (-1)
#endif
#ifndef SYS_dup2
#define SYS_dup2 (-1)
#endif
#ifndef SYS_epoll_create
#define SYS_epoll_create (-1)
#endif
#ifndef SYS_epoll_wait
#define SYS_epoll_wait (-1)
#endif
#ifndef SYS_eventfd
#define SYS_eventfd (-1)
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 (-1)
#endif
#ifndef SYS_fork
#define SYS_fork (-1)
#endif
#ifndef SYS_getdents
#define SYS_getdents (-1)
#endif
#ifndef SYS_inotify_init
#define SYS_inotify_init (-1)
#endif
#ifndef SYS_io_uring_enter
#define SYS_io_uring_enter (-1)
#endif
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup (-1)
#endif
#ifndef SYS_link
#define SYS_link (-1)
#endif
#ifndef SYS_lstat
#define SYS_lstat (-1)
#endif
#ifndef SYS_mkdir
#define SYS_mkdir (-1)
#endif
#ifndef SYS_open
#define SYS_open (-1)
#endif
#ifndef SYS_openat2
#define SYS_openat2 (-1)
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open (-1)
#endif
#ifndef SYS_pipe
#define SYS_pipe (-1)
#endif
#ifndef SYS_poll
#define SYS_poll (-1)
#endif
#ifndef SYS_readlink
#define SYS_readlink (-1)
#endif
#ifndef SYS_rename
#define SYS_rename (-1)
#endif
#ifndef SYS_renameat
#define SYS_renameat (-1)
#endif
#ifndef SYS_rmdir
#define SYS_rmdir (-1)
#endif
#ifndef SYS_select
#define SYS_select (-1)
#endif
#ifndef SYS_signalfd
#define SYS_signalfd (-1)
#endif
#ifndef SYS_stat
#define SYS_stat (-1)
#endif
#ifndef SYS_symlink
#define SYS_symlink (-1)
#endif
#ifndef SYS_unlink
#define SYS_unlink (-1)
#endif
#ifndef SYS_vfork
#define SYS_vfork (-1)
#endif

/* In alphabetical order. */
/* clang-format off */
#define CALLS(X) \
    X(accept) X(accept4) X(access) X(bind) X(brk) X(chdir) X(chmod) X(chown) X(chroot) \
    X(clock_nanosleep) X(clone) X(clone3) X(close_range) X(connect) X(copy_file_range) X(creat) \
    X(dup) X(dup2) X(dup3) X(epoll_create) X(epoll_create1) X(epoll_ctl) X(epoll_pwait) \
    X(epoll_wait) X(eventfd) X(execve) X(execveat) X(exit) X(exit_group) X(faccessat) \
    X(faccessat2) X(fadvise64) X(fallocate) X(fchdir) X(fchmod) X(fchmodat) X(fchown) \
    X(fchownat) X(fdatasync) X(flock) X(fork) X(fsetxattr) X(fstat) X(fsync) X(ftruncate) \
    X(getdents) X(getdents64) X(getpeername) X(getrandom) X(getsockname) X(getsockopt) \
    X(inotify_init) X(inotify_init1) X(io_submit) X(io_uring_enter) X(io_uring_setup) X(ioctl) \
    X(kill) X(link) X(linkat) X(listen) X(lstat) X(madvise) X(mbind) X(memfd_create) X(mincore) \
    X(mkdir) X(mkdirat) X(mlock) X(mlock2) X(mmap) X(mprotect) X(mremap) X(msgget) X(msgrcv) \
    X(msync) X(munmap) X(nanosleep) X(newfstatat) X(open) X(openat) X(openat2) X(pidfd_open) \
    X(pipe) X(pipe2) X(poll) X(ppoll) X(prctl) X(pread64) X(preadv) X(preadv2) X(prlimit64) \
    X(process_vm_writev) X(pselect6) X(ptrace) X(pwrite64) X(pwritev2) X(read) X(readahead) \
    X(readlink) X(readlinkat) X(readv) X(recvfrom) X(recvmmsg) X(recvmsg) X(renameat) \
    X(renameat2) X(rmdir) X(rt_sigaction) X(rt_sigprocmask) X(rt_sigsuspend) X(rt_sigtimedwait) \
    X(sched_setscheduler) X(select) X(semctl) X(semop) X(semtimedop) X(sendfile) X(sendmmsg) \
    X(sendmsg) X(sendto) X(set_mempolicy) X(setsid) X(setsockopt) X(shmat) X(shmctl) X(shmget) \
    X(shutdown) X(signalfd) X(signalfd4) X(socket) X(splice) X(stat) X(statfs) X(statx) \
    X(symlink) X(sync) X(sync_file_range) X(syncfs) X(timerfd_create) X(timerfd_settime) \
    X(umask) X(uname) X(unlink) X(utimensat) X(vmsplice) X(wait4) X(write)
/* clang-format on */

static const int numbers[] = {
#define X(name) SYS_##name,
    CALLS(X)
#undef X
};

const char *const system_call_names[] = {
#define X(name) #name,
    CALLS(X)
#undef X
        NULL};

static const struct {
    const char *name, *why;
} refused[] = {
    {"clock_gettime", "is answered without the kernel (vDSO)"},
    {"epoll_pwait2", "is made by launchers at every turn; epoll_ctl will do"},
    {"futex", "is how threads wait for each other, thousands of times a second: a process that is "
              "held there holds all that wait for its lock"},
    {"futex_waitv", "is how threads wait for each other"},
    {"getcpu", "is answered without the kernel (vDSO)"},
    {"gettimeofday", "is answered without the kernel (vDSO)"},
    {"restart_syscall", "is no call that a program makes"},
    {"rt_sigreturn", "ends a signal handler, and must not wait"},
    {"sched_yield", "is made by who spins, and says nothing of how far it is"},
    {"seccomp", "would put a filter before ours"},
    {"time", "is answered without the kernel (vDSO)"},
};

int system_call_number(const char *name) {
    for (size_t i = 0; system_call_names[i]; i++)
        if (str_eq(system_call_names[i], name))
            return numbers[i];
    return -1;
}

const char *system_call_why_not(const char *name) {
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        if (str_eq(refused[i].name, name))
            return refused[i].why;
    return NULL;
}
