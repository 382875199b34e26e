#include "faults/mechanism/tracing.h"

#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int64_t wait_ns = 5000000000;

void tracing_begin(struct tracing *w) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    w->took = false;
    sigprocmask(SIG_BLOCK, &child, &w->before);
}

void tracing_end(struct tracing *w) {
    if (w->took)
        kill(getpid(), SIGCHLD);
    sigprocmask(SIG_SETMASK, &w->before, NULL);
}

int tracing_wait(struct tracing *w, pid_t tid, int *ret_status) {
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

int tracing_stop(struct tracing *w, pid_t tid) {
    int status;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
        return -errno;
    int r = ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ? -errno : tracing_wait(w, tid, &status);
    return r ? r : WIFSTOPPED(status) ? 0 : -ESRCH;
}

static int with_thread(struct tracing *w, pid_t pid, pid_t tid, tracing_fn *fn, void *arg) {
    int r = tracing_stop(w, tid);
    if (r == 0 && (r = fn(w, pid, tid, arg)))
        ptrace(PTRACE_DETACH, tid, NULL, NULL);
    return r;
}

int tracing_any_thread(pid_t pid, tracing_fn *fn, void *arg) {
    struct tracing w;
    char path[64];
    tracing_begin(&w);
    int r = with_thread(&w, pid, pid, fn, arg);
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    FILE_CLOSE_DIR DIR *tasks = r == -EPERM ? opendir(path) : NULL;
    for (struct dirent *d; tasks && r == -EPERM && (d = readdir(tasks));) {
        pid_t tid = (pid_t)atoi(d->d_name);
        if (tid > 0 && tid != pid)
            r = with_thread(&w, pid, tid, fn, arg);
    }
    tracing_end(&w);
    return r;
}
