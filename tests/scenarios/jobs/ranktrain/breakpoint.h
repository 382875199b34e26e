/* breakpoint: holds the ranks of a job at the end of an exact step, by the channel that the harness
 * uses (scenarios/jobs/rankquake.h), so that no test depends on how fast it reads what a job prints.
 *
 * A job that is to be held is given RANKQUAKE_EVENTS=path. Each of its processes that trains connects
 * once; the end of the connection is the end of the process. */
#pragma once

#include "scenarios/jobs/rankquake.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { BREAKPOINT_WAIT_MS = 60000 };

struct breakpoint {
    int listener, page_fd;
    struct rankquake_page *page;
};

/* Every process is held at each step from this one on. Returns 0 or -1. */
static inline int breakpoint_open(struct breakpoint *b, const char *path, uint64_t step) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    b->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    b->page_fd = memfd_create("breakpoint", MFD_CLOEXEC);
    if (bind(b->listener, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(b->listener, 16) < 0 ||
        ftruncate(b->page_fd, sizeof(*b->page)) < 0)
        return -1;
    b->page = mmap(NULL, sizeof(*b->page), PROT_READ | PROT_WRITE, MAP_SHARED, b->page_fd, 0);
    if (b->page == MAP_FAILED)
        return -1;
    b->page->version = RANKQUAKE_VERSION_OF_PAGE;
    b->page->next_step = step;
    __atomic_store_n(&b->page->kinds, UINT32_C(1) << RANKQUAKE_STEP, __ATOMIC_RELEASE);
    return 0;
}

/* From here on nobody is held any more. */
static inline void breakpoint_clear(struct breakpoint *b) {
    __atomic_store_n(&b->page->kinds, 0, __ATOMIC_RELEASE);
}

static inline void breakpoint_close(struct breakpoint *b) {
    munmap(b->page, sizeof(*b->page));
    close(b->page_fd);
    close(b->listener);
}

/* The next process that connects; -1: none did in time. */
static inline int breakpoint_accept(struct breakpoint *b, pid_t *ret_pid) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = (char[]){'P'}, .iov_len = 1};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    struct ucred who;
    socklen_t length = sizeof(who);
    struct pollfd p = {.fd = b->listener, .events = POLLIN};
    if (poll(&p, 1, BREAKPOINT_WAIT_MS) <= 0)
        return -1;
    int fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC);
    *c = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(c), &b->page_fd, sizeof(int));
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length);
    *ret_pid = who.pid;
    if (sendmsg(fd, &m, MSG_NOSIGNAL) == 1)
        return fd;
    close(fd);
    return -1;
}

/* The process's next event that has text in it, as JSON in ret_event. False: it ended before, or
 * said nothing for a minute. A process that is held has `"armed":` in its event. */
static inline bool breakpoint_wait(int fd, const char *text,
                                   char ret_event[static RANKQUAKE_MESSAGE_MAX + 1]) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, BREAKPOINT_WAIT_MS) > 0) {
        ssize_t n = recv(fd, ret_event, RANKQUAKE_MESSAGE_MAX, 0);
        if (n <= 0)
            return false;
        ret_event[n] = 0;
        if (strstr(ret_event, text))
            return true;
    }
    return false;
}

static inline void breakpoint_go(int fd) {
    send(fd, "G", 1, MSG_NOSIGNAL);
}
