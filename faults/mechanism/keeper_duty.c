/* A process that runs and stands still in turns. */
#include "faults/mechanism/keeper.h"

#include "base/sys/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

/* Its children stand still with it where it leads a group, as a worker does. */
static int send_all(struct keeper *k, int signo) {
    const struct keeper_of *of = keeper_whom(k);
    struct pollfd ended = {.fd = of->pidfd, .events = POLLIN};
    if (poll(&ended, 1, 0) != 0)
        return -ESRCH;
    if (getpgid(of->pid) == of->pid && kill(-of->pid, signo) == 0)
        return 0;
    return process_signal(&(struct process){of->pid, of->pidfd}, signo);
}

static int begin(struct keeper *k, struct err *err) {
    int r = send_all(k, SIGSTOP);
    return r ? err_set(err, r, "stop process %d", (int)keeper_whom(k)->pid) : 0;
}

/* Who has ended meanwhile needs nothing more. */
static void go_on(struct keeper *k) {
    const struct keeper_of *of = keeper_whom(k);
    while (!keeper_wait(k, of->stop_ns) && send_all(k, SIGCONT) == 0)
        if (keeper_wait(k, of->run_ns) || send_all(k, SIGSTOP) != 0)
            break;
}

static void end(struct keeper *k) {
    send_all(k, SIGCONT);
}

const struct keeper_work keeper_duty = {.begin = begin, .go_on = go_on, .end = end};
