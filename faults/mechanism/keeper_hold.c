/* One thread of a process that stands still, as in a debugger: ptrace(2). */
#include "faults/mechanism/keeper.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* Only the thread that has seized it hears of it. */
static int begin(struct keeper *k, struct err *err) {
    pid_t tid = keeper_whom(k)->tid;
    int status;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
        return err_set(err, -errno, "hold thread %d", (int)tid);
    int r = ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ? -errno : 0;
    if (r == 0 && (waitpid(tid, &status, __WALL | __WNOTHREAD) != tid || !WIFSTOPPED(status)))
        r = -ESRCH;
    return r ? err_set(err, r, "hold thread %d", (int)tid) : 0;
}

/* It goes on where it stood; of what it was sent meanwhile nothing is lost. One that has ended is
 * taken note of first, or else its parent would never hear of its end. */
static void end(struct keeper *k) {
    pid_t tid = keeper_whom(k)->tid;
    if (ptrace(PTRACE_DETACH, tid, NULL, NULL) < 0)
        waitpid(tid, NULL, __WALL | __WNOTHREAD | WNOHANG);
}

const struct keeper_work keeper_hold = {.begin = begin, .end = end};
