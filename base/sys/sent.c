#include "base/sys/sent.h"

#include "base/sys/clock.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

void sent_ask(int socket) {
    setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPNS, &(int){1}, sizeof(int));
}

static void close_all(const struct cmsghdr *c) {
    int fd;
    for (size_t at = CMSG_LEN(0); at + sizeof(fd) <= c->cmsg_len; at += sizeof(fd)) {
        memcpy(&fd, (const char *)c + at, sizeof(fd));
        close(fd);
    }
}

/* The kernel stamps with the wall clock. */
int64_t sent_ns(struct msghdr *m) {
    struct timespec at;
    int64_t now_ns = clock_monotonic_ns(), wall_ns = clock_realtime_ns();
    int64_t ago_ns = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_TIMESTAMPNS) {
            memcpy(&at, CMSG_DATA(c), sizeof(at));
            ago_ns = wall_ns - ((int64_t)at.tv_sec * 1000000000 + at.tv_nsec);
        }
        if (c->cmsg_type == SCM_RIGHTS)
            close_all(c);
    }
    return ago_ns > 0 ? now_ns - ago_ns : now_ns;
}
