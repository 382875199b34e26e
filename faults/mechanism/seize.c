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
#include <string.h>
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

/* Where an instruction is, and what stood there; written: instead of it. */
struct poked {
    unsigned long at;
    bool written;
    long word;
};

#if defined(__x86_64__)

enum { CODE_64 = 0x33 };
static const long syscall_insn = 0x050f, insn_mask = 0xffff;

static int put_insn(pid_t tid, unsigned long at, struct poked *ret) {
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, tid, at, NULL);
    if (errno || ptrace(PTRACE_POKETEXT, tid, at, (word & ~insn_mask) | syscall_insn) < 0)
        return -errno;
    *ret = (struct poked){.at = at, .written = true, .word = word};
    return 0;
}

/* Where there is a system call instruction: the one it is in, or one put where it stands. Memory
 * that is written this way is the process's own copy. */
static int find_insn(pid_t tid, unsigned long pc, struct poked *ret) {
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, tid, pc - 2, NULL);
    *ret = (struct poked){.at = pc - 2};
    if (errno == 0 && (word & insn_mask) == syscall_insn)
        return 0;
    return put_insn(tid, pc, ret);
}

static int get_regs(pid_t tid, struct user_regs_struct *ret) {
    if (ptrace(PTRACE_GETREGS, tid, NULL, ret) < 0)
        return -errno;
    return ret->cs == CODE_64 ? 0 : -ENOTSUP;
}

static int set_regs(pid_t tid, struct user_regs_struct *r) {
    return ptrace(PTRACE_SETREGS, tid, NULL, r) < 0 ? -errno : 0;
}

/* Below what a leaf function may use without saying so. */
static unsigned long data_place(const struct user_regs_struct *r) {
    return (r->rsp - 1024) & ~15UL;
}

static long returned(const struct user_regs_struct *r) {
    return (long)r->rax;
}

static int make_call(pid_t tid, struct user_regs_struct *r, const struct seize_call *c,
                     struct poked *ret) {
    int found = find_insn(tid, r->rip, ret);
    if (found)
        return found;
    r->rip = ret->at;
    r->rax = (unsigned long)c->number;
    r->rdi = c->args[0];
    r->rsi = c->args[1];
    r->rdx = c->args[2];
    r->r10 = c->args[3];
    r->r8 = c->args[4];
    r->r9 = c->args[5];
    r->orig_rax = (unsigned long)-1; /* in no system call: nothing to restart */
    return set_regs(tid, r);
}

#elif defined(__aarch64__)

enum { INSN = 4 };
static const long syscall_insn = 0xd4000001, insn_mask = 0xffffffff;

static int put_insn(pid_t tid, unsigned long at, struct poked *ret) {
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, tid, at, NULL);
    if (errno || ptrace(PTRACE_POKETEXT, tid, at, (word & ~insn_mask) | syscall_insn) < 0)
        return -errno;
    *ret = (struct poked){.at = at, .written = true, .word = word};
    return 0;
}

static int get_regs(pid_t tid, struct user_regs_struct *ret) {
    struct iovec v = {ret, sizeof(*ret)};
    if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &v) < 0)
        return -errno;
    return v.iov_len == sizeof(*ret) ? 0 : -ENOTSUP;
}

static int set_regs(pid_t tid, struct user_regs_struct *r) {
    struct iovec v = {r, sizeof(*r)};
    return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &v) < 0 ? -errno : 0;
}

static unsigned long data_place(const struct user_regs_struct *r) {
    return (r->sp - 1024) & ~15UL;
}

static long returned(const struct user_regs_struct *r) {
    return (long)r->regs[0];
}

/* Never where it stands: a system call that was interrupted stands at its own instruction, and the
 * kernel may make restart_syscall of what it finds there. */
static int make_call(pid_t tid, struct user_regs_struct *r, const struct seize_call *c,
                     struct poked *ret) {
    int put = put_insn(tid, r->pc + INSN, ret);
    if (put && (put = put_insn(tid, r->pc - INSN, ret)))
        return put;
    r->pc = ret->at;
    r->regs[8] = (unsigned long)c->number;
    for (int i = 0; i < 6; i++)
        r->regs[i] = c->args[i];
    return set_regs(tid, r);
}

#else

#define user_regs_struct seize_no_regs
struct seize_no_regs {
    int none;
};

static int get_regs(pid_t tid, struct user_regs_struct *ret) {
    return -ENOTSUP;
}

static int set_regs(pid_t tid, struct user_regs_struct *r) {
    return -ENOTSUP;
}

static unsigned long data_place(const struct user_regs_struct *r) {
    return 0;
}

static long returned(const struct user_regs_struct *r) {
    return -ENOTSUP;
}

static int make_call(pid_t tid, struct user_regs_struct *r, const struct seize_call *c,
                     struct poked *ret) {
    return -ENOTSUP;
}

#endif

/* ---- one thread ---- */

static int stop_thread(struct seize_waiting *w, pid_t tid) {
    int status;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
        return -errno;
    int r = ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ? -errno : wait_change(w, tid, &status);
    return r ? r : WIFSTOPPED(status) ? 0 : -ESRCH;
}

/* What is done to a thread that has been stopped: returns 0, or a -errno, and then it goes on. */
typedef int thread_fn(struct seize_waiting *w, pid_t pid, pid_t tid, void *arg);

static int with_thread(struct seize_waiting *w, pid_t pid, pid_t tid, thread_fn *fn, void *arg) {
    int r = stop_thread(w, tid);
    if (r == 0 && (r = fn(w, pid, tid, arg)))
        ptrace(PTRACE_DETACH, tid, NULL, NULL);
    return r;
}

/* Any thread will do; the first may have ended before the others. */
static int with_any_thread(pid_t pid, thread_fn *fn, void *arg) {
    struct seize_waiting w;
    char path[64];
    waiting_begin(&w);
    int r = with_thread(&w, pid, pid, fn, arg);
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    FILE_CLOSE_DIR DIR *tasks = r == -EPERM ? opendir(path) : NULL;
    for (struct dirent *d; tasks && r == -EPERM && (d = readdir(tasks));) {
        pid_t tid = (pid_t)atoi(d->d_name);
        if (tid > 0 && tid != pid)
            r = with_thread(&w, pid, tid, fn, arg);
    }
    waiting_end(&w);
    return r;
}

static int say(int r, pid_t pid, const char *what, struct err *err) {
    if (r == -ENOTSUP)
        return err_say(err, r,
                       "process %d runs code in which this build cannot make a call "
                       "(32-bit?)",
                       (int)pid);
    if (r == -ETIME)
        return err_say(err, r, "process %d has not answered for 5 s: it hangs in the kernel",
                       (int)pid);
    return r ? err_set(err, r, "make process %d call %s", (int)pid, what) : 0;
}

/* ---- an exit ---- */

/* Once it goes on, a signal that comes first is kept from it. A thread that was seized and is not
 * let go dies with its process. */
static int exit_thread(struct seize_waiting *w, pid_t pid, pid_t tid, void *arg) {
    const struct seize_call *exit = arg;
    struct user_regs_struct regs;
    struct poked poked;
    int status, r = get_regs(tid, &regs);
    r = r ? r : make_call(tid, &regs, exit, &poked);
    if (r)
        return r;
    do {
        if (ptrace(PTRACE_CONT, tid, NULL, NULL) < 0)
            return -errno;
        r = wait_change(w, tid, &status);
    } while (r == 0 && WIFSTOPPED(status));
    return r;
}

int seize_exit(pid_t pid, int code, struct err *err) {
    struct seize_call exit = {.number = SYS_exit_group, .args = {(unsigned long)code}};
    char what[32];
    snprintf(what, sizeof(what), "exit_group(%d)", code);
    return say(with_any_thread(pid, exit_thread, &exit), pid, what, err);
}

/* ---- a call after which it goes on ---- */

enum { WORDS_MAX = SEIZE_DATA_MAX / sizeof(long) };

struct calling {
    struct seize_call call;
    long returned;
    long words[WORDS_MAX]; /* what stood where the data are */
};

/* Exchanges the words at this place for others. */
static int swap(pid_t tid, unsigned long at, long *words, size_t n) {
    for (size_t i = 0; i < n; i++) {
        errno = 0;
        long word = ptrace(PTRACE_PEEKDATA, tid, at + i * sizeof(long), NULL);
        if (errno || ptrace(PTRACE_POKEDATA, tid, at + i * sizeof(long), words[i]) < 0)
            return -errno;
        words[i] = word;
    }
    return 0;
}

/* One instruction. Signals that come first are kept: *ret_kept, a bit each. */
static int step(struct seize_waiting *w, pid_t tid, uint64_t *ret_kept) {
    int status, r;
    do {
        if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) < 0)
            return -errno;
        r = wait_change(w, tid, &status);
        if (r == 0 && !WIFSTOPPED(status))
            return -ESRCH;
        if (r == 0 && WSTOPSIG(status) != SIGTRAP && status >> 16 == 0)
            *ret_kept |= UINT64_C(1) << (WSTOPSIG(status) - 1);
    } while (r == 0 && (WSTOPSIG(status) != SIGTRAP || status >> 16));
    return r;
}

static void send_kept(pid_t pid, pid_t tid, uint64_t kept) {
    for (int signo = 1; signo <= 64; signo++)
        if (kept >> (signo - 1) & 1)
            syscall(SYS_tgkill, pid, tid, signo);
}

/* Restores all that make_call has changed, whatever became of the call. */
static int call_here(struct seize_waiting *w, pid_t pid, pid_t tid, struct calling *c,
                     struct user_regs_struct *before) {
    struct user_regs_struct regs = *before;
    struct poked poked;
    uint64_t kept = 0;
    int r = make_call(tid, &regs, &c->call, &poked);
    if (r)
        return r;
    r = step(w, tid, &kept);
    if (r == 0 && (r = get_regs(tid, &regs)) == 0)
        c->returned = returned(&regs);
    if (poked.written)
        ptrace(PTRACE_POKETEXT, tid, poked.at, poked.word);
    int restored = set_regs(tid, before);
    send_kept(pid, tid, kept);
    return r ? r : restored;
}

static int call_thread(struct seize_waiting *w, pid_t pid, pid_t tid, void *arg) {
    struct calling *c = arg;
    struct user_regs_struct before;
    size_t n = (c->call.len + sizeof(long) - 1) / sizeof(long);
    int r = get_regs(tid, &before);
    if (r)
        return r;
    unsigned long at = data_place(&before);
    memset(c->words, 0, sizeof(c->words));
    if (c->call.data) {
        memcpy(c->words, c->call.data, c->call.len);
        c->call.args[c->call.data_arg] = at;
    }
    r = swap(tid, at, c->words, n);
    if (r == 0) {
        r = call_here(w, pid, tid, c, &before);
        int restored = swap(tid, at, c->words, n);
        r = r ? r : restored;
    }
    if (r == 0)
        ptrace(PTRACE_DETACH, tid, NULL, NULL);
    return r;
}

long seize_call(pid_t pid, const struct seize_call *call, struct err *err) {
    struct calling c = {.call = *call};
    char what[32];
    if (call->len > SEIZE_DATA_MAX)
        return err_say(err, -EINVAL, "a call with %zu bytes of data, and %d are the most",
                       call->len, SEIZE_DATA_MAX);
    snprintf(what, sizeof(what), "system call %ld", call->number);
    int r = say(with_any_thread(pid, call_thread, &c), pid, what, err);
    return r ? r : c.returned;
}
