#include "scenarios/jobs/ranktrain/asked.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/sys/file.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

enum { STACK_BYTES = 64 * 1024 };

int asked_open(struct asked *ret, struct err *err) {
    sigset_t set;
    *ret = ASKED_CLOSED;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    ret->told_fd = ret->end_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return ret->told_fd < 0 ? err_set(err, -errno, "signalfd") : 0;
}

static bool is_readable(int fd, int timeout_ms) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms) > 0;
}

/* Until the grace behind SIGTERM is over, or nobody wants to know. */
static void *wait_for_end(void *arg) {
    const struct asked *a = arg;
    struct pollfd p[2] = {{.fd = a->told_fd, .events = POLLIN},
                          {.fd = a->stop_fd, .events = POLLIN}};
    while (poll(p, 2, -1) < 0 && errno == EINTR)
        continue;
    int64_t deadline_ns = deadline_in_ns(a->grace_ns);
    while (!is_readable(a->stop_fd, deadline_left_ms(deadline_ns)))
        if (deadline_now_ns() >= deadline_ns) {
            eventfd_write(a->end_fd, 1);
            break;
        }
    return NULL;
}

int asked_allow(struct asked *a, int64_t grace_ns, struct err *err) {
    pthread_attr_t attributes;
    int end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = end < 0 || stop < 0 ? -errno : 0;
    const struct asked before = *a;
    a->end_fd = end;
    a->stop_fd = stop;
    a->grace_ns = grace_ns;
    if (r == 0) {
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        r = -pthread_create(&a->thread, &attributes, wait_for_end, a);
        pthread_attr_destroy(&attributes);
    }
    if (r == 0)
        return 0;
    file_close(&end);
    file_close(&stop);
    *a = before;
    return err_set(err, r, "start the thread that waits for the end");
}

bool asked_is(const struct asked *a) {
    return is_readable(a->told_fd, 0);
}

void asked_close(struct asked *a) {
    if (a->stop_fd >= 0) {
        eventfd_write(a->stop_fd, 1);
        pthread_join(a->thread, NULL);
        file_close(&a->end_fd);
    }
    file_close(&a->stop_fd);
    file_close(&a->told_fd);
    *a = ASKED_CLOSED;
}
