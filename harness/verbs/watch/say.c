#include "harness/verbs/watch/say.h"

#include "base/buf.h"
#include "base/str.h"
#include "harness/run/hand.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A fault is answered when it has been taken, not when it is in force. */
enum { ANSWER_MS = 60000 };

static int connect_to(const struct folder *run, int flags, struct err *err) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", run->fd, hand_socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    int code = errno;
    if (fd >= 0)
        close(fd);
    if (code == EAGAIN)
        return err_say(err, -code, "too many speak to the run at once; say it again");
    if (code == EACCES || code == EPERM)
        return err_set(err, -code, "speak to the run %s", run->path);
    return err_say(
        err, -ENOENT,
        "%s takes nothing by hand: start it with rankquake run --interactive or --paused, and "
        "wait for its control run",
        run->path);
}

int say_connect(const struct folder *run, struct err *err) {
    return connect_to(run, 0, err);
}

int say_connect_now(const struct folder *run, struct err *err) {
    return connect_to(run, SOCK_NONBLOCK, err);
}

int say_read(const char *answer, char *ret, size_t size) {
    str_copy(ret, size, strlen(answer) > 3 ? answer + 3 : "");
    return str_starts(answer, "ok ") ? 0 : 1;
}

static int hear(int fd, struct buf *out, struct err *err) {
    char part[4096];
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    while (!out->len || !memchr(out->data, '\n', out->len)) {
        if (poll(&readable, 1, ANSWER_MS) == 0)
            return err_say(err, -ETIME, "no answer has come for %d s", ANSWER_MS / 1000);
        ssize_t n = read(fd, part, sizeof(part));
        if (n <= 0)
            return err_say(err, -EPIPE, "the run has ended, or does not take words from here");
        buf_put(out, part, (size_t)n);
    }
    return 0;
}

int say_line(int fd, const char *line, char *ret, size_t size, struct err *err) {
    BUF_FINI struct buf asked = {0}, answer = {0};
    buf_printf(&asked, "%s\n", line);
    if (send(fd, asked.data, asked.len, MSG_NOSIGNAL) != (ssize_t)asked.len)
        return err_say(err, -EPIPE, "the run has ended, or does not take words from here");
    int r = hear(fd, &answer, err);
    if (r < 0)
        return r;
    *strchr(answer.data, '\n') = '\0';
    return say_read(answer.data, ret, size);
}
