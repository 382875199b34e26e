/* tracing: waits for threads of another process that are traced by this one. A stop of a thread that
 * is no child of ours is told by SIGCHLD only, so that is blocked meanwhile, and sent once more at the
 * end if some came. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct tracing {
    sigset_t before;
    bool took; /* a SIGCHLD that others may wait for as well */
};

void tracing_begin(struct tracing *w);
void tracing_end(struct tracing *w);
/* The next change of the thread's state. Returns 0, -ETIME (5 s) or another -errno. */
int tracing_wait(struct tracing *w, pid_t tid, int *ret_status);
/* Takes hold of a thread, which stands still then. 0, -ESRCH, -EPERM, -ETIME. */
int tracing_stop(struct tracing *w, pid_t tid);

/* What is done to a thread that has been stopped: returns 0, or a -errno, and then it goes on. */
typedef int tracing_fn(struct tracing *w, pid_t pid, pid_t tid, void *arg);
/* To any thread of the process: the first may have ended before the others, or have a tracer. */
int tracing_any_thread(pid_t pid, tracing_fn *fn, void *arg);
