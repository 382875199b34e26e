#include "faults/mechanism/crash.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "faults/mechanism/core_file.h"
#include "faults/mechanism/registers.h"
#include "faults/mechanism/tracing.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const int64_t crash_wait_ns = 5000000000;

struct crash {
    int signo, core;
    uint64_t core_bytes_max;
    struct err *err; /* of the core */
};

/* ---- the core ---- */

/* All other threads that can be held, too: one that has another tracer is left out. */
static size_t hold_others(struct tracing *w, pid_t pid, pid_t tid, pid_t **ret) {
    char path[64];
    size_t n = 0;
    *ret = NULL;
    mem_push(*ret, n) = tid;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    FILE_CLOSE_DIR DIR *tasks = opendir(path);
    for (struct dirent *d; tasks && (d = readdir(tasks));) {
        pid_t other = (pid_t)atoi(d->d_name);
        if (other > 0 && other != tid && tracing_stop(w, other) == 0)
            mem_push(*ret, n) = other;
    }
    return n;
}

static void write_core(struct tracing *w, pid_t pid, pid_t tid, const struct crash *c) {
    struct core_of of = {.pid = pid, .bytes_max = c->core_bytes_max};
    pid_t *tids;
    of.n = hold_others(w, pid, tid, &tids);
    of.tids = tids;
    ptrace(PTRACE_GETSIGINFO, tid, NULL, &of.info);
    core_file_write(c->core, &of, c->err);
    for (size_t i = 1; i < of.n; i++)
        ptrace(PTRACE_DETACH, tids[i], NULL, NULL);
    free(tids);
}

/* ---- the crash ---- */

/* As abort(3) does: it may not be blocked, and the thread sends it to itself. */
static int begin_abort(pid_t pid, pid_t tid, struct user_regs_struct *regs,
                       struct registers_poked *poked) {
    const struct seize_call self = {
        .number = SYS_tgkill,
        .args = {process_status_number(pid, pid, "NSpid:", 10),
                 process_status_number(pid, tid, "NSpid:", 10), SIGABRT},
    };
    uint64_t blocked = 0;
    if (ptrace(PTRACE_GETSIGMASK, tid, sizeof(blocked), &blocked) < 0)
        return -errno;
    blocked &= ~(UINT64_C(1) << (SIGABRT - 1));
    if (ptrace(PTRACE_SETSIGMASK, tid, sizeof(blocked), &blocked) < 0)
        return -errno;
    return registers_make_call(tid, regs, &self, poked);
}

/* It is about to get the signal: what it was made to do for that is taken back. */
static int restore(pid_t tid, struct user_regs_struct *before, struct registers_poked *poked) {
    if (poked->written)
        ptrace(PTRACE_POKETEXT, tid, poked->at, poked->word);
    poked->written = false;
    return registers_set(tid, before);
}

static bool is_signal(int status, int signo) {
    return WIFSTOPPED(status) && status >> 16 == 0 && WSTOPSIG(status) == signo;
}

static int crash_thread(struct tracing *w, pid_t pid, pid_t tid, void *arg) {
    const struct crash *c = arg;
    int64_t until_ns = clock_monotonic_ns() + crash_wait_ns;
    struct user_regs_struct before, regs;
    struct registers_poked poked = {0};
    bool restored = c->signo != SIGABRT, dumped = c->core < 0;
    int status = 0, r = registers_get(tid, &before);
    regs = before;
    if (r == 0)
        r = c->signo == SIGABRT ? begin_abort(pid, tid, &regs, &poked)
                                : registers_call_null(tid, &regs);
    while (r == 0 && clock_monotonic_ns() < until_ns) {
        bool signal = WIFSTOPPED(status) && status >> 16 == 0;
        if (ptrace(PTRACE_CONT, tid, NULL, signal ? WSTOPSIG(status) : 0) < 0)
            return -errno;
        r = tracing_wait(w, tid, &status);
        if (r || !WIFSTOPPED(status))
            return r;
        if (!is_signal(status, c->signo))
            continue;
        if (!restored)
            r = restore(tid, &before, &poked);
        restored = true;
        if (!dumped && !process_has_signal(pid, "SigCgt:", c->signo)) {
            write_core(w, pid, tid, c);
            dumped = true;
        }
    }
    return r ? r : -ETIME;
}

/* Who ignores it would go on: abort(3) takes that back, too. */
static int unignore(pid_t pid, int signo, struct err *err) {
    const uint64_t dies[4] = {(uint64_t)(uintptr_t)SIG_DFL};
    const struct seize_call call = {.number = SYS_rt_sigaction,
                                    .args = {(unsigned long)signo, 0, 0, 8},
                                    .data = dies,
                                    .len = sizeof(dies),
                                    .data_arg = 1};
    return process_has_signal(pid, "SigIgn:", signo) ? (int)seize_call(pid, &call, err) : 0;
}

int crash(pid_t pid, int signo, int core, uint64_t core_bytes_max, struct err *err) {
    struct err why = {0};
    struct crash c = {signo, core, core_bytes_max, &why};
    int r = unignore(pid, signo, err);
    if (r)
        return r;
    r = tracing_any_thread(pid, crash_thread, &c);
    if (r == -ETIME)
        return err_say(err, r,
                       "process %d has not ended 5 s after signal %d: a handler of its own "
                       "has kept it",
                       (int)pid, signo);
    if (r)
        return err_set(err, r, "make process %d crash", (int)pid);
    if (why.code && err)
        *err = why;
    return why.code;
}
