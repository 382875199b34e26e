#include "harness/crash/told.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/sent.h"
#include "base/sys/unix_address.h"
#include "scenarios/jobs/rankquake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

enum { TOLD_CLIENTS_MAX = 1024, TOLD_AT_ONCE = 256 };

struct told_events {
    int epoll, listener, page, clients[TOLD_CLIENTS_MAX];
    char path[PATH_MAX]; /* "": it has an abstract name */
    told_fn *fn;
    void *arg;
};

static int make_page(struct told_events *t, struct err *err) {
    struct rankquake_page page = {.version = RANKQUAKE_VERSION_OF_PAGE};
    t->page = memfd_create("rankquake-page", MFD_CLOEXEC);
    if (t->page < 0 || write(t->page, &page, sizeof(page)) != sizeof(page))
        return err_set(err, -errno, "make the page of events (memfd)");
    return 0;
}

static int watch(struct told_events *t, int fd) {
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

/* By way of its folder's descriptor, which is returned: a path may be longer than an address. */
static int name_path(struct told_events *t, const char *path, char ret[UNIX_ADDRESS_MAX],
                     struct err *err) {
    str_copy(t->path, sizeof(t->path), path);
    char *slash = strrchr(t->path, '/');
    if (slash)
        *slash = '\0';
    int dir = open(slash ? t->path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set(err, -errno, "listen at %s", path);
    if (slash)
        *slash = '/';
    snprintf(ret, UNIX_ADDRESS_MAX, "/proc/self/fd/%d/%s", dir, str_base(path));
    return dir;
}

static int listen_at(struct told_events *t, const char *path, struct err *err) {
    struct sockaddr_un addr;
    char near[UNIX_ADDRESS_MAX];
    FILE_CLOSE int dir = -1;
    bool abstract = unix_address_is_abstract(path);
    if (!abstract && (dir = name_path(t, path, near, err)) < 0)
        return dir;
    int len = unix_address(abstract ? path : near, &addr);
    if (len < 0)
        return err_say(err, len, "%s is too long for a socket", path);
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    t->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->listener < 0 || bind(t->listener, (struct sockaddr *)&addr, (socklen_t)len) != 0 ||
        listen(t->listener, 128) != 0 || watch(t, t->listener) != 0)
        return err_set(err, -errno, "listen at %s", path);
    return 0;
}

struct told_events *told_new(const char *path, told_fn *fn, void *arg, struct err *err) {
    struct told_events *t = mem_new(struct told_events);
    *t = (struct told_events){.epoll = -1, .listener = -1, .page = -1, .fn = fn, .arg = arg};
    for (int i = 0; i < TOLD_CLIENTS_MAX; i++)
        t->clients[i] = -1;
    if (listen_at(t, path, err) == 0 && make_page(t, err) == 0)
        return t;
    return told_free(t);
}

struct told_events *told_free(struct told_events *t) {
    if (!t)
        return NULL;
    if (*t->path && t->listener >= 0)
        unlink(t->path);
    for (int i = 0; i < TOLD_CLIENTS_MAX; i++)
        file_close(&t->clients[i]);
    file_close(&t->listener);
    file_close(&t->epoll);
    file_close(&t->page);
    free(t);
    return NULL;
}

int told_fd(const struct told_events *t) {
    return t->epoll;
}

static void welcome(struct told_events *t) {
    int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), i = 0;
    while (i < TOLD_CLIENTS_MAX && t->clients[i] >= 0)
        i++;
    if (fd < 0 || i == TOLD_CLIENTS_MAX || watch(t, fd) != 0) {
        file_close(&fd);
        return;
    }
    struct ucred who = {0};
    socklen_t size = sizeof(who);
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
    t->fn(t->arg,
          &(struct told_event){.kind = "", .step = -1, .text = "", .rank = -1, .pid = who.pid});
    t->clients[i] = fd;
    sent_ask(fd);
    descriptors_send(fd, "P", 1, &t->page, 1, 0);
}

static void hear(struct told_events *t, const char *text, size_t len, int pid, int64_t t_ns) {
    ARENA_FINI struct arena arena = {0};
    struct err ignored;
    const struct json *j = json_parse(&arena, text, len, &ignored);
    const char *model = json_get_string(j, "model", NULL);
    struct told_event e = {.kind = json_get_string(j, "kind", ""),
                           .step = json_get_i64(j, "step", -1),
                           .text = model ? model : json_get_string(j, "path", ""),
                           .rank = (int)json_get_i64(json_get(j, "env"), "RANK", -1),
                           .pid = pid,
                           .t_ns = t_ns};
    if (j)
        t->fn(t->arg, &e);
}

static void read_client(struct told_events *t, int fd) {
    char text[RANKQUAKE_MESSAGE_MAX];
    struct ucred who = {0};
    socklen_t size = sizeof(who);
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
    for (int i = 0; i < TOLD_AT_ONCE; i++) {
        char control[SENT_ROOM];
        struct iovec v = {text, sizeof(text)};
        struct msghdr m = {.msg_iov = &v,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof(control)};
        ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n > 0)
            hear(t, text, (size_t)n, (int)who.pid, sent_ns(&m));
        else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            for (int k = 0; k < TOLD_CLIENTS_MAX; k++)
                if (t->clients[k] == fd)
                    t->clients[k] = -1;
            epoll_ctl(t->epoll, EPOLL_CTL_DEL, fd, NULL); /* stages have copies of it */
            close(fd);
            return;
        } else
            return;
    }
}

void told_take(struct told_events *t) {
    struct epoll_event e[16];
    int n;
    while (t && (n = epoll_wait(t->epoll, e, 16, 0)) > 0)
        for (int i = 0; i < n; i++)
            if (e[i].data.fd == t->listener)
                welcome(t);
            else
                read_client(t, e[i].data.fd);
}
