#include "harness/observe/pidfds.h"

#include "agent/base/list.h"
#include "agent/sys/clock.h"
#include "agent/sys/process.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct watched {
    struct list link;
    struct pidfds *owner;
    const char *node;
    pid_t pid;
    int pidfd;
    struct loop_source *source;
};

struct pidfds {
    struct loop *loop;
    struct recorder *rec;
    void (*ended)(void *arg, pid_t pid);
    void *arg;
    struct list all;
};

struct pidfds *pidfds_new(struct loop *l, struct recorder *rec, void (*ended)(void *arg, pid_t pid),
                          void *arg) {
    struct pidfds *p = calloc(1, sizeof(*p));
    if (!p)
        abort();
    *p = (struct pidfds){.loop = l, .rec = rec, .ended = ended, .arg = arg};
    list_init(&p->all);
    return p;
}

static void forget(struct watched *w) {
    list_remove(&w->link);
    loop_source_free(w->source);
    close(w->pidfd);
    free(w);
}

struct pidfds *pidfds_free(struct pidfds *p) {
    if (!p)
        return NULL;
    list_each_safe(it, next, &p->all) forget(list_entry(it, struct watched, link));
    free(p);
    return NULL;
}

/* Either source may come first: the parent reaps at any moment. */
static bool read_status(const struct watched *w, int *ret) {
    return process_zombie_status(w->pid, ret) == 0 || process_exit_info(w->pidfd, ret) == 0;
}

static void record_exit(struct watched *w) {
    int status = 0;
    int64_t now = clock_monotonic_ns();
    bool known = read_status(w, &status);
    struct pidfds *p = w->owner;
    p->ended(p->arg, w->pid);
    struct json_writer *out = recorder_begin(p->rec, now, SOURCE_KERNEL, "worker-exit");
    json_put_string(out, "node", w->node);
    json_put_i64(out, "pid", w->pid);
    if (!known)
        json_put_bool(out, "unknown", true);
    else if (WIFSIGNALED(status))
        json_put_i64(out, "signal", WTERMSIG(status));
    else
        json_put_i64(out, "code", WEXITSTATUS(status));
    forget(w);
    recorder_end(p->rec, NULL);
}

static void on_pidfd(void *arg, int fd, int what) {
    (void)fd;
    (void)what;
    record_exit(arg);
}

void pidfds_watch(struct pidfds *p, const char *node, pid_t pid, int pidfd) {
    if (pidfds_find(p, pid) >= 0) {
        close(pidfd);
        return;
    }
    struct watched *w = calloc(1, sizeof(*w));
    if (!w)
        abort();
    *w = (struct watched){.owner = p, .node = node, .pid = pid, .pidfd = pidfd};
    w->source = loop_fd(p->loop, pidfd, LOOP_READ, on_pidfd, w);
    list_append(&p->all, &w->link);
}

int pidfds_find(const struct pidfds *p, pid_t pid) {
    list_each(it, &p->all) {
        struct watched *w = list_entry(it, struct watched, link);
        if (w->pid == pid)
            return w->pidfd;
    }
    return -1;
}

/* Records are told to listeners that may drain again: start over after each. */
static struct watched *first_ended(struct pidfds *p) {
    list_each(it, &p->all) {
        struct watched *w = list_entry(it, struct watched, link);
        struct pollfd pfd = {.fd = w->pidfd, .events = POLLIN};
        if (poll(&pfd, 1, 0) == 1)
            return w;
    }
    return NULL;
}

void pidfds_drain(struct pidfds *p) {
    for (struct watched *w; (w = first_ended(p));)
        record_exit(w);
}
