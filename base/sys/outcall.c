#include "base/sys/outcall.h"

#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/namespace.h"
#include "base/sys/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_FREE = 3, TEXT_MAX = 16 << 20 };
/* It ends by itself when its socket closes, unless it hangs. */
static const int64_t END_NS = 200000000;

/* ---- texts, with their length in front ---- */

static bool send_all(int fd, const void *data, size_t len) {
    for (const char *p = data; len;) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

static bool send_text(int fd, const char *text, size_t len) {
    uint32_t head = (uint32_t)len;
    return send_all(fd, &head, sizeof(head)) && send_all(fd, text, len);
}

/* Until then what has come is waited for; INT64_MAX: for ever. 0, -ETIME, -EPIPE. */
static int receive_all(int fd, void *data, size_t len, int64_t until_ns) {
    for (char *p = data; len;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left = until_ns == INT64_MAX ? -1 : until_ns - clock_monotonic_ns();
        int n = poll(&ready, 1,
                     until_ns == INT64_MAX ? -1
                     : left <= 0           ? 0
                                           : (int)(left / 1000000 + 1));
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            return -ETIME;
        ssize_t got = recv(fd, p, len, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -EPIPE;
        p += got;
        len -= (size_t)got;
    }
    return 0;
}

static int receive_text(int fd, struct buf *ret, int64_t until_ns) {
    char part[4096];
    uint32_t len;
    int r = receive_all(fd, &len, sizeof(len), until_ns);
    if (r == 0 && len > TEXT_MAX)
        r = -EPIPE;
    while (r == 0 && len) {
        size_t n = len < sizeof(part) ? len : sizeof(part);
        r = receive_all(fd, part, n, until_ns);
        if (r == 0)
            buf_put(ret, part, n);
        len -= (uint32_t)n;
    }
    return r;
}

/* ---- the child ---- */

static void serve(int fd, const struct outcall_work *work) __attribute__((noreturn));
static void serve(int fd, const struct outcall_work *work) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct buf question = {0}, answer = {0};
    namespace_die_with_parent();
    setsid(); /* Ctrl-C is the caller's to handle */
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        signal(signals[i], SIG_DFL);
    signal_reset();
    if (fd != FIRST_FREE && dup2(fd, FIRST_FREE) < 0)
        _exit(127);
    process_close_from(FIRST_FREE + 1);
    void *state = work->begin ? work->begin() : NULL;
    while (receive_text(FIRST_FREE, &question, INT64_MAX) == 0) {
        work->answer(state, buf_str(&question), &answer);
        if (!send_text(FIRST_FREE, buf_str(&answer), answer.len))
            break;
        buf_clear(&question);
        buf_clear(&answer);
    }
    _exit(0);
}

/* ---- the caller ---- */

int outcall_open(struct outcall *ret, const struct outcall_work *work, struct err *err) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return err_set(err, -errno, "make a pair of sockets");
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        serve(ends[1], work);
    }
    int failed = errno;
    close(ends[1]);
    struct outcall a = {{0, -1}, ends[0]};
    int r = pid < 0 ? err_set(err, -failed, "fork") : process_open(pid, &a.child, err);
    if (r)
        close(ends[0]);
    else
        *ret = a;
    return r;
}

int outcall_ask(struct outcall *a, const char *question, int64_t budget_ns, struct buf *ret,
                struct err *err) {
    if (!a->child.pid)
        return err_say(err, -EPIPE, "nobody is there to answer any more");
    int r = send_text(a->fd, question, strlen(question)) ? 0 : -EPIPE;
    if (r == 0)
        r = receive_text(a->fd, ret, clock_monotonic_ns() + budget_ns);
    if (r == 0)
        return 0;
    process_signal(&a->child, SIGKILL);
    outcall_close(a);
    if (r == -ETIME)
        return err_say(err, r, "no answer within %d s", (int)(budget_ns / 1000000000));
    return err_say(err, r, "whoever was to answer has died");
}

void outcall_close(struct outcall *a) {
    file_close(&a->fd);
    if (a->child.pid && process_reap(&a->child, END_NS, NULL) == -ETIME) {
        process_signal(&a->child, SIGKILL);
        process_reap(&a->child, END_NS, NULL);
    }
    process_close(&a->child);
}
