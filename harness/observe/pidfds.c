#include "harness/observe/pidfds.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/process.h"
#include "harness/carrier/host_process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t STATUS_WAIT_NS = 200 * 1000000;

enum { RECENT_MAX = 512 }; /* ends of processes that nobody watches yet */

/* Alive: ended_ns is 0. Ended: it may still have something to say. Pending: it has said all and the
 * record waits for the status. Then the record is written and it is forgotten. */
struct watched {
    struct list link;
    struct pidfds *owner;
    const char *node;
    pid_t pid;
    int pidfd;
    struct loop_source *source;
    int64_t since_ns, ended_ns;
    bool pending;
    bool told;     /* the first thread's end was heard; status is its */
    bool doubtful; /* another thread ended otherwise after it, or ends were lost */
    bool settled;  /* the last thread's end was heard too */
    int status;
    int other; /* status of another thread that ended by exit(n), n > 0; 0: none */
};

struct pidfds {
    struct loop *loop;
    struct recorder *rec;
    const struct exit_sources *sources;
    void (*ended)(void *arg, pid_t pid);
    void *arg;
    struct list all;
    bool info_works;
    int events; /* -1: not needed, or refused */
    struct loop_source *on_events, *on_late;
    struct proc_exit recent[RECENT_MAX];
    size_t recent_n; /* counts on; the newest lies before recent[recent_n % RECENT_MAX] */
};

const struct exit_sources exit_sources_of_host = {
    .zombie = process_zombie_status,
    .info = process_exit_info,
    .info_works = process_exit_info_works,
    .events_open = proc_events_open,
    .events_read = proc_events_read,
    .events_close = proc_events_close,
};

const char *pidfds_way(const struct pidfds *p) {
    return p->info_works ? "pidfd" : p->events >= 0 ? "events" : "zombie";
}

/* ---- a record ---- */

static void forget(struct watched *w) {
    list_remove(&w->link);
    loop_source_free(w->source);
    close(w->pidfd);
    free(w);
}

/* status NULL: unknown. Whoever is told of the record may call us again. */
static void record_exit(struct watched *w, const int *status) {
    struct recorder *rec = w->owner->rec;
    struct clock_stamp at = {.t_ns = w->ended_ns};
    if (host_process_is(w->pid))
        host_process_end(w->pid, &at);
    struct json_writer *out = recorder_begin_at(rec, &at, SOURCE_KERNEL, "worker-exit");
    json_put_string(out, "node", w->node);
    json_put_i64(out, "pid", w->pid);
    if (!status)
        json_put_bool(out, "unknown", true);
    else if (WIFSIGNALED(*status))
        json_put_i64(out, "signal", WTERMSIG(*status));
    else
        json_put_i64(out, "code", WEXITSTATUS(*status));
    forget(w);
    recorder_end(rec, NULL);
}

/* ---- what the kernel's events say ---- */

static bool has_ended(const struct watched *w) {
    struct pollfd pfd = {.fd = w->pidfd, .events = POLLIN};
    return w->ended_ns || poll(&pfd, 1, 0) == 1;
}

/* A process ends as its first thread did, unless that one left alone before another ended them all:
 * it is believed when the others agree. The end of the last thread is told after the pidfd has
 * woken, so a first thread whose end was heard before waits for one more, and all that has been
 * told by then is read before the record is written. (The threads that an exec takes away are
 * killed, and say nothing of how the process ends.) */
static void hear(struct watched *w, const struct proc_exit *e) {
    if (e->t_ns < w->since_ns)
        return;
    if (e->thread == e->pid) {
        w->told = true;
        w->doubtful = w->other && w->other != e->status;
        w->status = e->status;
    } else {
        w->doubtful |= w->told && e->status != w->status;
        w->other = WIFEXITED(e->status) && e->status ? e->status : w->other;
    }
    w->settled |= w->told && has_ended(w);
}

static struct watched *find(const struct pidfds *p, pid_t pid) {
    list_each(it, &p->all) {
        struct watched *w = list_entry(it, struct watched, link);
        if (w->pid == pid)
            return w;
    }
    return NULL;
}

static void doubt_all(struct pidfds *p) {
    p->recent_n = 0;
    list_each(it, &p->all) {
        struct watched *w = list_entry(it, struct watched, link);
        w->doubtful |= w->told || w->ended_ns;
        w->settled |= w->doubtful && w->ended_ns;
    }
}

static void close_events(struct pidfds *p) {
    p->on_events = loop_source_free(p->on_events);
    if (p->events >= 0)
        p->sources->events_close(p->events);
    p->events = -1;
}

static void read_events(struct pidfds *p) {
    struct proc_exit e;
    int r = 0;
    while (p->events >= 0 && ((r = p->sources->events_read(p->events, &e)) == 1 || r == -ENOBUFS)) {
        struct watched *w = r == 1 ? find(p, e.pid) : NULL;
        if (r != 1)
            doubt_all(p);
        else if (w)
            hear(w, &e);
        else
            p->recent[p->recent_n++ % RECENT_MAX] = e;
    }
    if (r < 0) /* broken */
        close_events(p);
}

/* A worker may have ended before it was watched. */
static void hear_recent(struct watched *w) {
    const struct pidfds *p = w->owner;
    for (size_t i = p->recent_n > RECENT_MAX ? p->recent_n - RECENT_MAX : 0; i < p->recent_n; i++)
        if (p->recent[i % RECENT_MAX].pid == w->pid)
            hear(w, &p->recent[i % RECENT_MAX]);
}

/* ---- pending ones ---- */

static struct watched *first_pending(const struct pidfds *p, bool only_due) {
    int64_t now = clock_monotonic_ns();
    list_each(it, &p->all) {
        struct watched *w = list_entry(it, struct watched, link);
        if (w->pending && (!only_due || w->settled || w->ended_ns + STATUS_WAIT_NS <= now))
            return w;
    }
    return NULL;
}

/* They became pending in the order in which they lie, and all wait equally long. */
static void record_due(struct pidfds *p) {
    for (struct watched *w; (w = first_pending(p, true));)
        record_exit(w, w->settled && !w->doubtful ? &w->status : NULL);
    const struct watched *next = first_pending(p, false);
    if (next)
        loop_timer_at(p->on_late, next->ended_ns + STATUS_WAIT_NS);
}

static void on_late(void *arg, int64_t now) {
    record_due(arg);
}

static void on_events(void *arg, int fd, int what) {
    read_events(arg);
    record_due(arg);
}

/* ---- an end ---- */

/* /proc lets go of a process when its reaping begins, and the pidfd knows a moment later, with
 * POLLHUP: longer than that only where the reaper is not run meanwhile. */
static int info_once_reaped(const struct watched *w, int *ret_status) {
    const struct exit_sources *sources = w->owner->sources;
    struct pollfd pfd = {.fd = w->pidfd};
    int r = sources->info(w->pidfd, ret_status);
    if (r == -EAGAIN && poll(&pfd, 1, (int)(STATUS_WAIT_NS / 1000000)) == 1)
        r = sources->info(w->pidfd, ret_status);
    return r;
}

static bool ask_status(const struct watched *w, int *ret_status) {
    const struct pidfds *p = w->owner;
    if (host_process_is(w->pid))
        return host_process_status(w->pid, ret_status) == 0;
    int r = p->sources->zombie(w->pid, ret_status);
    if (r && p->info_works)
        r = r == -ESRCH ? info_once_reaped(w, ret_status) : p->sources->info(w->pidfd, ret_status);
    return r == 0;
}

/* The status is asked for at once, while it may still be a zombie. */
static void note_end(struct watched *w) {
    struct pidfds *p = w->owner;
    int status;
    w->ended_ns = clock_monotonic_ns();
    w->source = loop_source_free(w->source);
    bool known = ask_status(w, &status);
    p->ended(p->arg, w->pid);
    list_remove(&w->link);
    list_append(&p->all, &w->link);
    if (known || p->events < 0 || host_process_is(w->pid)) {
        record_exit(w, known ? &status : NULL);
        return;
    }
    w->pending = true;
    read_events(p);
    record_due(p);
}

static void on_pidfd(void *arg, int fd, int what) {
    note_end(arg);
}

/* Records are told to listeners that may drain again: start over after each. */
static struct watched *first_ended(struct pidfds *p) {
    list_each(it, &p->all) {
        struct watched *w = list_entry(it, struct watched, link);
        if (!w->ended_ns && has_ended(w))
            return w;
    }
    return NULL;
}

void pidfds_drain(struct pidfds *p) {
    const struct watched *waiting;
    for (struct watched *w; (w = first_ended(p));)
        note_end(w);
    while ((waiting = first_pending(p, false))) {
        struct pollfd pfd = {.fd = p->events, .events = POLLIN};
        int64_t left_ns = waiting->ended_ns + STATUS_WAIT_NS - clock_monotonic_ns();
        if (left_ns > 0)
            poll(&pfd, 1, (int)(left_ns / 1000000) + 1);
        read_events(p);
        record_due(p);
    }
}

/* ---- watching ---- */

struct pidfds *pidfds_new(struct loop *l, struct recorder *rec, const struct exit_sources *sources,
                          void (*ended)(void *arg, pid_t pid), void *arg) {
    struct pidfds *p = mem_new(struct pidfds);
    *p = (struct pidfds){
        .loop = l, .rec = rec, .sources = sources, .ended = ended, .arg = arg, .events = -1};
    list_init(&p->all);
    p->info_works = sources->info_works();
    if (!p->info_works)
        p->events = sources->events_open(NULL);
    if (p->events >= 0) {
        p->on_events = loop_fd(l, p->events, LOOP_READ, on_events, p);
        p->on_late = loop_timer(l, on_late, p);
    }
    return p;
}

struct pidfds *pidfds_free(struct pidfds *p) {
    if (!p)
        return NULL;
    list_each_safe(it, next, &p->all) forget(list_entry(it, struct watched, link));
    close_events(p);
    loop_source_free(p->on_late);
    free(p);
    return NULL;
}

void pidfds_watch(struct pidfds *p, const char *node, pid_t pid, int pidfd, int64_t since_ns) {
    if (pidfds_find(p, pid) >= 0) {
        close(pidfd);
        return;
    }
    struct watched *w = mem_new(struct watched);
    *w = (struct watched){
        .owner = p, .node = node, .pid = pid, .pidfd = pidfd, .since_ns = since_ns};
    w->source = loop_fd(p->loop, pidfd, LOOP_READ, on_pidfd, w);
    list_append(&p->all, &w->link);
    hear_recent(w);
}

int pidfds_find(const struct pidfds *p, pid_t pid) {
    list_each(it, &p->all) {
        struct watched *w = list_entry(it, struct watched, link);
        if (w->pid == pid && !w->ended_ns)
            return w->pidfd;
    }
    return -1;
}
