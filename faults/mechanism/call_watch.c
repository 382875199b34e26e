#include "faults/mechanism/call_watch.h"

#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE (1UL << 0)
#endif
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS      SECCOMP_IOW(4, __u64)
#endif

static const struct {
    int nr;
    enum call_kind kind;
} watched[] = {
    {SYS_connect, CALL_CONNECT},  {SYS_openat, CALL_OPEN},
    {SYS_openat2, CALL_OPEN},     {SYS_write, CALL_WRITE},
    {SYS_pwrite64, CALL_WRITE},   {SYS_writev, CALL_WRITE},
    {SYS_pwritev, CALL_WRITE},    {SYS_pwritev2, CALL_WRITE},
    {SYS_sendfile, CALL_WRITE},   {SYS_copy_file_range, CALL_WRITE},
    {SYS_renameat2, CALL_RENAME}, {SYS_close, CALL_CLOSE},
#ifdef SYS_renameat
    {SYS_renameat, CALL_RENAME},
#endif
#ifdef SYS_open /* calls that newer machines never had */
    {SYS_open, CALL_OPEN},        {SYS_creat, CALL_OPEN},
    {SYS_rename, CALL_RENAME},
#endif
};
enum { WATCHED = sizeof(watched) / sizeof(*watched), PASSING = 3, OPENS = 4 };

/* ---- in the child ---- */

/* Which argument of a call holds an open's flags; -1: none does. */
static int flags_of(int nr) {
#ifdef SYS_open
    if (nr == SYS_open)
        return 1;
#endif
    return nr == SYS_openat ? 2 : -1;
}

/* The low half of it, as both architectures have it first. */
static size_t put_passing(struct sock_filter *code, size_t n, int arg) {
    unsigned at = (unsigned)(offsetof(struct seccomp_data, args) + 8 * (size_t)arg);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
                                             O_ACCMODE | O_CREAT | O_TRUNC, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return n;
}

static size_t put_call(struct sock_filter *code, size_t n, const struct call_watch *w, int nr) {
    int flags = w->passes_readers ? flags_of(nr) : -1;
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0,
                                             flags < 0 ? 1 : 1 + PASSING);
    if (flags >= 0)
        n = put_passing(code, n, flags);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    return n;
}

static size_t put_filter(struct sock_filter *code, const struct call_watch *w) {
    size_t n = 0;
    const struct sock_filter begin[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RIGHTS_OWN_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    for (; n < sizeof(begin) / sizeof(*begin); n++)
        code[n] = begin[n];
    for (size_t i = 0; i < WATCHED; i++)
        if (w->kinds & watched[i].kind)
            n = put_call(code, n, w, watched[i].nr);
    for (size_t i = 0; i < w->numbers_n; i++)
        n = put_call(code, n, w, w->numbers[i]);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return n;
}

/* A signal with a handler must not break the call off, where the kernel knows how (5.19). */
static int install(const struct call_watch *w) {
    struct sock_filter code[5 + 2 * (WATCHED + CALL_NUMBERS_MAX) + PASSING * OPENS];
    struct sock_fprog program = {.len = (unsigned short)put_filter(code, w), .filter = code};
    unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
    unsigned long wait = w->kinds & CALL_INTERRUPTIBLE ? 0 : SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -errno;
    int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | wait, &program);
    if (fd < 0 && errno == EINVAL)
        fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return fd < 0 ? -errno : fd;
}

/* It goes with the exec: to close it might be to wait for who does not listen yet. */
int call_watch_install(int to, const struct call_watch *w) {
    int fd = install(w);
    return fd < 0 ? fd : descriptors_send(to, "W", 1, &fd, 1, 0);
}

/* ---- the watcher ---- */

/* Who calls sleeps while the watcher answers, and the other way round: the kernel may as well wake the
 * one where the other is (Linux 6.6; before, it wakes it anywhere, which takes longer). */
static void wake_beside(int fd) {
    ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

int call_watch_take(int from) {
    char byte;
    int fd;
    size_t n = 1;
    ssize_t got = descriptors_receive(from, &byte, 1, &fd, &n);
    if (got >= 0 && n)
        wake_beside(fd);
    return got < 0 ? (int)got : n ? fd : -EBADMSG;
}

pid_t call_watch_process(pid_t thread) {
    char path[64];
    BUF_FINI struct buf status = {0};
    snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
    const char *line =
        file_read(path, 1 << 16, &status, NULL) == 0 ? strstr(status.data, "\nTgid:") : NULL;
    return line ? (pid_t)atoi(line + strlen("\nTgid:")) : thread;
}

static void read_address(pid_t pid, const struct seccomp_data *d, struct sockaddr_storage *ret) {
    size_t len = d->args[2] < sizeof(*ret) ? (size_t)d->args[2] : sizeof(*ret);
    struct iovec own = {ret, len}, its = {(void *)(uintptr_t)d->args[1], len};
    if (process_vm_readv(pid, &own, 1, &its, 1, 0) != (ssize_t)len)
        *ret = (struct sockaddr_storage){0};
}

static enum call_kind kind_of(int nr) {
    for (size_t i = 0; i < WATCHED; i++)
        if (watched[i].nr == nr)
            return watched[i].kind;
    return 0;
}

/* Whether a call of this kernel has room in so many bytes; asked once. */
static bool fits(size_t room) {
    static struct seccomp_notif_sizes sizes;
    return (sizes.seccomp_notif || syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) == 0) &&
           sizes.seccomp_notif <= room;
}

/* To receive where nothing waits would wait; and once all that was watched has ended, for ever. */
int call_watch_receive(int watch, short revents, struct watched_call *ret) {
    union {
        struct seccomp_notif notif;
        char room[1024]; /* of a newer kernel */
    } n = {0};
    if (!(revents & POLLIN))
        return revents ? -ECONNRESET : 0;
    if (!fits(sizeof(n)))
        return -EOPNOTSUPP;
    if (ioctl(watch, SECCOMP_IOCTL_NOTIF_RECV, &n) != 0)
        return errno == ENOENT || errno == EINTR ? 0 : -errno;
    *ret = (struct watched_call){.id = n.notif.id,
                                 .kind = kind_of(n.notif.data.nr),
                                 .thread = (pid_t)n.notif.pid,
                                 .nr = n.notif.data.nr};
    for (size_t i = 0; i < 6; i++)
        ret->args[i] = n.notif.data.args[i];
    if (ret->kind == CALL_CONNECT)
        read_address((pid_t)n.notif.pid, &n.notif.data, &ret->to);
    return 1;
}

int call_watch_next(int watch, struct watched_call *ret) {
    struct pollfd p = {.fd = watch, .events = POLLIN};
    int r = poll(&p, 1, 0) < 0 ? -errno : call_watch_receive(watch, p.revents, ret);
    if (r > 0)
        ret->pid = call_watch_process(ret->thread);
    return r;
}

void call_watch_attend(int watch, int fd) {
    struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = watch, .events = POLLIN}};
    struct watched_call call;
    while (poll(p, 2, -1) >= 0 || errno == EINTR) {
        if (p[0].revents)
            return;
        int r = p[1].revents ? call_watch_next(watch, &call) : 0;
        if (r > 0)
            call_watch_pass(watch, call.id);
        else if (r < 0)
            p[1].fd = -1;
    }
}

void call_watch_pass(int watch, uint64_t id) {
    union {
        struct seccomp_notif_resp answer;
        char room[1024];
    } r = {0};
    r.answer.id = id;
    r.answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(watch, SECCOMP_IOCTL_NOTIF_SEND, &r);
}

int call_watch_answer(int watch, uint64_t id, int64_t value) {
    union {
        struct seccomp_notif_resp answer;
        char room[1024];
    } r = {0};
    r.answer.id = id;
    r.answer.val = value < 0 ? 0 : value;
    r.answer.error = value < 0 ? (int)value : 0;
    return ioctl(watch, SECCOMP_IOCTL_NOTIF_SEND, &r) == 0 ? 0 : -errno;
}

/* In one step, where the kernel knows how (5.14): in two, the caller is woken for each. */
int call_watch_give(int watch, uint64_t id, int fd, bool close_on_exec) {
    struct seccomp_notif_addfd add = {.id = id,
                                      .flags = SECCOMP_ADDFD_FLAG_SEND,
                                      .srcfd = (unsigned)fd,
                                      .newfd_flags = close_on_exec ? O_CLOEXEC : 0};
    int its = ioctl(watch, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    if (its >= 0 || errno != EINVAL)
        return its < 0 ? -errno : 0;
    add.flags = 0;
    its = ioctl(watch, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    if (its < 0)
        return -errno;
    call_watch_answer(watch, id, its);
    return 0;
}

bool call_watch_waits(int watch, uint64_t id) {
    return ioctl(watch, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

int call_watch_check(struct err *err) {
    static const struct call_watch tried = {.kinds = CALL_CONNECT};
    int ends[2], status = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return err_set(err, -errno, "make a socket pair");
    pid_t pid = fork();
    if (pid == 0)
        _exit(-call_watch_install(ends[1], &tried) & 255);
    if (pid > 0)
        waitpid(pid, &status, 0);
    int code = pid < 0 ? errno : WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
    close(ends[0]);
    close(ends[1]);
    if (code == 0)
        return 0;
    return err_say(err, -ENOTSUP,
                   "system calls cannot be watched here (seccomp with a listener: %s): in a "
                   "container, start it with --security-opt seccomp=unconfined",
                   strerror(code));
}
