#include "faults/mechanism/seize.h"

#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t wait_ns = 5000000000;

/* ---- waiting: a stop of a thread that is no child of ours is told by SIGCHLD only ---- */

struct seize_waiting {
    sigset_t before;
    bool took; /* a SIGCHLD that others may wait for as well */
};

static void waiting_begin(struct seize_waiting *w) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    w->took = false;
    sigprocmask(SIG_BLOCK, &child, &w->before);
}

static void waiting_end(struct seize_waiting *w) {
    if (w->took)
        kill(getpid(), SIGCHLD);
    sigprocmask(SIG_SETMASK, &w->before, NULL);
}

/* The next change of the thread's state. Returns 0, -ETIME or another -errno. */
static int wait_change(struct seize_waiting *w, pid_t tid, int *ret_status) {
    int64_t until = clock_monotonic_ns() + wait_ns;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        pid_t got = waitpid(tid, ret_status, __WALL | WNOHANG);
        if (got == tid)
            return 0;
        if (got < 0)
            return -errno;
        int64_t left = until - clock_monotonic_ns();
        if (left <= 0)
            return -ETIME;
        struct timespec t = {left / 1000000000, left % 1000000000};
        w->took |= sigtimedwait(&child, NULL, &t) == SIGCHLD;
    }
}

/* ---- the one system call ---- */

#if defined(__x86_64__)

enum { CODE_64 = 0x33 };
static const long syscall_insn = 0x050f, insn_mask = 0xffff;

/* Where there is a system call instruction: the one it is in, or one put where it stands. Memory
 * that is written this way is the process's own copy. */
static int find_insn(pid_t tid, unsigned long pc, unsigned long *ret) {
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, tid, pc - 2, NULL);
    *ret = pc - 2;
    if (errno == 0 && (word & insn_mask) == syscall_insn)
        return 0;
    errno = 0;
    word = ptrace(PTRACE_PEEKTEXT, tid, pc, NULL);
    *ret = pc;
    if (errno || ptrace(PTRACE_POKETEXT, tid, pc, (word & ~insn_mask) | syscall_insn) < 0)
        return -errno;
    return 0;
}

static int set_call(pid_t tid, int code) {
    struct user_regs_struct r;
    unsigned long at;
    if (ptrace(PTRACE_GETREGS, tid, NULL, &r) < 0)
        return -errno;
    if (r.cs != CODE_64)
        return -ENOTSUP;
    int found = find_insn(tid, r.rip, &at);
    if (found)
        return found;
    r.rip = at;
    r.rax = SYS_exit_group;
    r.rdi = (unsigned long)code;
    r.orig_rax = (unsigned long)-1; /* in no system call: nothing to restart */
    return ptrace(PTRACE_SETREGS, tid, NULL, &r) < 0 ? -errno : 0;
}

#elif defined(__aarch64__)

enum { INSN = 4 };
static const long syscall_insn = 0xd4000001, insn_mask = 0xffffffff;

/* Never where it stands: a system call that was interrupted stands at its own instruction, and the
 * kernel may make restart_syscall of what it finds there. */
static int put_insn(pid_t tid, unsigned long at) {
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, tid, at, NULL);
    if (errno || ptrace(PTRACE_POKETEXT, tid, at, (word & ~insn_mask) | syscall_insn) < 0)
        return -errno;
    return 0;
}

static int set_call(pid_t tid, int code) {
    struct user_regs_struct r;
    struct iovec v = {&r, sizeof(r)};
    if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &v) < 0)
        return -errno;
    if (v.iov_len != sizeof(r))
        return -ENOTSUP;
    unsigned long at = r.pc + INSN;
    int put = put_insn(tid, at);
    if (put && (put = put_insn(tid, at = r.pc - INSN)))
        return put;
    r.pc = at;
    r.regs[8] = SYS_exit_group;
    r.regs[0] = (unsigned long)code;
    return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &v) < 0 ? -errno : 0;
}

#else

static int set_call(pid_t tid, int code) {
    return -ENOTSUP;
}

#endif

/* ---- one thread ---- */

/* Once it goes on, a signal that comes first is kept from it. */
static int run_to_end(struct seize_waiting *w, pid_t tid) {
    int status, r;
    do {
        if (ptrace(PTRACE_CONT, tid, NULL, NULL) < 0)
            return -errno;
        r = wait_change(w, tid, &status);
    } while (r == 0 && WIFSTOPPED(status));
    return r;
}

/* A thread that was seized and is not let go dies with its process. */
static int exit_thread(struct seize_waiting *w, pid_t tid, int code) {
    int status;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
        return -errno;
    int r = ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ? -errno : wait_change(w, tid, &status);
    if (r)
        return r;
    if (!WIFSTOPPED(status))
        return -ESRCH;
    r = set_call(tid, code);
    if (r) {
        ptrace(PTRACE_DETACH, tid, NULL, NULL);
        return r;
    }
    return run_to_end(w, tid);
}

/* Any thread will do; the first may have ended before the others. */
static int exit_any_thread(struct seize_waiting *w, pid_t pid, int code) {
    char path[64];
    int r = exit_thread(w, pid, code);
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    FILE_CLOSE_DIR DIR *tasks = r == -EPERM ? opendir(path) : NULL;
    for (struct dirent *d; tasks && r == -EPERM && (d = readdir(tasks));) {
        pid_t tid = (pid_t)atoi(d->d_name);
        if (tid > 0 && tid != pid)
            r = exit_thread(w, tid, code);
    }
    return r;
}

int seize_exit(pid_t pid, int code, struct err *err) {
    struct seize_waiting w;
    waiting_begin(&w);
    int r = exit_any_thread(&w, pid, code);
    waiting_end(&w);
    if (r == -ENOTSUP)
        return err_say(err, r, "process %d runs code this build cannot make exit (32-bit?)",
                       (int)pid);
    if (r == -ETIME)
        return err_say(err, r, "process %d has not answered for 5 s: it hangs in the kernel",
                       (int)pid);
    return r ? err_set(err, r, "make process %d call exit_group(%d)", (int)pid, code) : 0;
}
