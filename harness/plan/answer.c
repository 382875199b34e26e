#include "harness/plan/answer.h"

#include "base/sys/clock.h"
#include "base/sys/process.h"
#include "harness/plan/rootfs.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

static const int64_t ASK_WAIT_NS = 30000000000; /* a program on a network disk takes its time */

static void read_all(int fd, char *ret, size_t size) {
    int64_t deadline = clock_monotonic_ns() + ASK_WAIT_NS;
    size_t n = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left_ms = (deadline - clock_monotonic_ns()) / 1000000;
        if (left_ms <= 0 || poll(&p, 1, (int)left_ms) <= 0)
            break;
        ssize_t got = read(fd, ret + n, size - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    ret[n] = '\0';
}

bool answer_read(const struct plan *p, const char *const *argv, char *ret, size_t size) {
    const char *rootfs = p ? p->rootfs : NULL;
    int fds[2];
    struct process child = PROCESS_NONE;
    if (process_report_pipe(fds) < 0)
        return false;
    struct process_spawn s = {.argv = argv,
                              .fds = (const int[]){-1, fds[1], -1},
                              .death_signal = SIGKILL,
                              .in_child = rootfs ? rootfs_enter : NULL,
                              .in_child_arg = (void *)(uintptr_t)rootfs};
    int r = process_spawn(&s, &child, NULL);
    close(fds[1]);
    *ret = '\0';
    if (r == 0) {
        read_all(fds[0], ret, size);
        process_signal(&child, SIGKILL);
        process_reap(&child, ASK_WAIT_NS, NULL);
        process_close(&child);
    }
    close(fds[0]);
    return *ret;
}
