/* Python's interpreter lock, taken by a thread of the process itself: it is stopped, calls
 * PyGILState_Ensure as any thread may, and stands still where that has returned to. To give it back it
 * calls PyGILState_Release and goes on where it was. */
#include "faults/mechanism/keeper.h"

#include "base/mem.h"
#include "faults/mechanism/registers.h"
#include "faults/mechanism/symbol.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct gil {
    struct user_regs_struct before;
    struct registers_vector vector;
    uint64_t release;
    unsigned long state; /* what PyGILState_Ensure has returned */
    uint64_t kept;       /* signals that came meanwhile, a bit each */
};

/* The next stop; only the thread that has seized it hears of it. */
static int wait_stop(pid_t tid, int *ret_status) {
    pid_t got;
    while ((got = waitpid(tid, ret_status, __WALL | __WNOTHREAD)) < 0 && errno == EINTR)
        ;
    return got == tid && WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
}

/* Lets the thread call a function, and returns when it stands behind it. */
static int call(struct gil *g, pid_t tid, uint64_t function, unsigned long arg,
                unsigned long *ret) {
    struct user_regs_struct regs = g->before;
    int status, r = registers_call(tid, &regs, function, arg);
    while (r == 0) {
        if (ptrace(PTRACE_CONT, tid, NULL, NULL) < 0)
            return -errno;
        r = wait_stop(tid, &status);
        r = r ? r : registers_get(tid, &regs);
        if (r || (WSTOPSIG(status) == SIGSEGV && registers_at_null(&regs)))
            break;
        if (status >> 16 == 0)
            g->kept |= UINT64_C(1) << (WSTOPSIG(status) - 1);
        if (WSTOPSIG(status) == SIGSEGV)
            r = -EFAULT;
    }
    *ret = (unsigned long)registers_returned(&regs);
    return r;
}

static void let_go(struct gil *g, pid_t pid, pid_t tid) {
    registers_set_vector(tid, &g->vector);
    registers_set(tid, &g->before);
    for (int signo = 1; signo <= 64; signo++)
        if (g->kept >> (signo - 1) & 1)
            syscall(SYS_tgkill, pid, tid, signo);
    if (ptrace(PTRACE_DETACH, tid, NULL, NULL) < 0)
        waitpid(tid, NULL, __WALL | __WNOTHREAD | WNOHANG);
}

/* It may hold the very lock that a call would wait for. */
static int take(struct gil *g, pid_t tid, uint64_t ensure) {
    int r = registers_get(tid, &g->before);
    if (r == 0 && registers_in_call(&g->before) == SYS_futex)
        r = -EAGAIN;
    r = r ? r : registers_get_vector(tid, &g->vector);
    return r ? r : call(g, tid, ensure, 0, &g->state);
}

static int begin(struct keeper *k, struct err *err) {
    const struct keeper_of *of = keeper_whom(k);
    uint64_t ensure = symbol_find(of->pid, "PyGILState_Ensure");
    struct gil *g = *keeper_memory(k) = mem_new(struct gil);
    int status;
    g->release = symbol_find(of->pid, "PyGILState_Release");
    if (!ensure || !g->release)
        return err_say(err, -ENOTSUP,
                       "it is no Python process: neither its program nor a library of it has "
                       "PyGILState_Ensure");
    if (ptrace(PTRACE_SEIZE, of->tid, NULL, NULL) < 0 ||
        ptrace(PTRACE_INTERRUPT, of->tid, NULL, NULL) < 0)
        return err_set(err, -errno, "hold thread %d", (int)of->tid);
    int r = wait_stop(of->tid, &status);
    r = r ? r : take(g, of->tid, ensure);
    if (r == 0)
        return 0;
    let_go(g, of->pid, of->tid);
    if (r == -EAGAIN)
        return err_say(
            err, r,
            "its first thread waits for a lock just now and cannot take another: choose a "
            "step, at which it waits for us");
    return err_set(err, r, "let thread %d take the interpreter lock", (int)of->tid);
}

static void end(struct keeper *k) {
    const struct keeper_of *of = keeper_whom(k);
    struct gil *g = *keeper_memory(k);
    unsigned long nothing;
    call(g, of->tid, g->release, g->state, &nothing);
    let_go(g, of->pid, of->tid);
}

const struct keeper_work keeper_gil = {.begin = begin, .end = end};
