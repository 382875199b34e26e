#include "base/sys/descriptors.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void descriptors_open_standard(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR); /* inherited, as the others are */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

bool descriptors_flush_stdout(void) {
    struct stat st;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    return fstat(STDOUT_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

void descriptors_raise_limit(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

union descriptors_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * DESCRIPTORS_MAX)];
};

int descriptors_send(int socket, const void *data, size_t len, const int *fds, size_t n,
                     int flags) {
    union descriptors_control control = {0};
    struct iovec iov = {(void *)(uintptr_t)data, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    assert(n <= DESCRIPTORS_MAX);
    if (n) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * n);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * n);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
    }
    while (sendmsg(socket, &msg, flags | MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

ssize_t descriptors_receive(int socket, void *data, size_t size, int *fds, size_t *n) {
    union descriptors_control control;
    struct iovec iov = {data, size};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = CMSG_SPACE(sizeof(int) * *n)};
    ssize_t got;
    do
        got = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    size_t room = *n;
    bool passed = c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS;
    *n = passed ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    assert(*n <= room);
    if (passed)
        memcpy(fds, CMSG_DATA(c), *n * sizeof(int));
    return got;
}

int descriptors_lift(int fd, int least) {
    int high = fcntl(fd, F_DUPFD_CLOEXEC, least), code = high < 0 ? -errno : high;
    close(fd);
    return code == -EINVAL ? -EMFILE : code; /* the limit lies below */
}
