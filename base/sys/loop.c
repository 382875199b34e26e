#include "base/sys/loop.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Of LOOP_LAST, before it is looked whether there are others again: which costs more the more
 * sockets wait to be served. */
enum { LAST_AT_ONCE = 1024, LAST_US = 5000 };

/* What is ready when a turn begins is served at once; a process that sleeps is run soon after it has been
 * woken, or the kernel counts how long it was not. */
static const int64_t at_once_ns = 200000, woken_ns = 50000;

/* One wait for events, and what is served after it. */
struct loop_turn {
    int64_t began_ns, first_ns; /* first: the first callback; 0: none yet */
    int64_t waited_ns;          /* for a processor, by then, as the kernel counts it */
    int64_t late_ns;            /* what the first callback was told of may be so old */
};

struct loop {
    struct event_base *base;
    struct list sources;
    int schedstat; /* -1: lateness is not watched */
    int broken;    /* -errno: the kernel has no room to watch what it was to */
    struct loop_turn turn;
};

struct loop_source {
    struct list link;
    struct loop *loop;
    struct event *event;
    int fd;
    void *arg;
    loop_fd_fn *on_fd;
    loop_timer_fn *on_timer;
    loop_signal_fn *on_signal;
};

struct loop *loop_new(struct err *err) {
    struct loop *l = mem_new(struct loop);
    struct event_config *config = event_config_new();
    if (!config)
        abort();
    list_init(&l->sources);
    l->schedstat = -1;
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER | EVENT_BASE_FLAG_NOLOCK);
    event_config_set_max_dispatch_interval(config, &(struct timeval){.tv_usec = LAST_US},
                                           LAST_AT_ONCE, LOOP_LAST);
    l->base = event_base_new_with_config(config);
    event_config_free(config);
    if (l->base && event_base_priority_init(l->base, LOOP_PRIORITIES) == 0)
        return l;
    err_set(err, errno ? -errno : -ENOMEM, "make an event loop");
    free(l);
    return NULL;
}

struct loop *loop_free(struct loop *l) {
    if (!l)
        return NULL;
    list_each_safe(it, next, &l->sources)
        loop_source_free(list_entry(it, struct loop_source, link));
    event_base_free(l->base);
    file_close(&l->schedstat);
    free(l);
    return NULL;
}

struct event_base *loop_base(struct loop *l) {
    return l->base;
}

/* ---- lateness ---- */

int loop_watch_lateness(struct loop *l) {
    l->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    return l->schedstat < 0 ? -errno : 0;
}

/* "57 1203 4": ns on a processor, ns of waiting for one, turns. */
static int64_t waited_ns(const struct loop *l) {
    char text[96];
    long long ran, waited = 0;
    ssize_t n = pread(l->schedstat, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return sscanf(text, "%lld %lld", &ran, &waited) == 2 ? waited : 0;
}

static void turn_begins(struct loop *l) {
    int64_t now = clock_monotonic_ns();
    const struct loop_turn before = l->turn;
    l->turn = (struct loop_turn){.began_ns = now, .waited_ns = waited_ns(l)};
    l->turn.late_ns =
        before.began_ns ? now - (before.first_ns ? before.first_ns : before.began_ns) : 0;
}

/* Who was asleep has been told of nothing that came before; who was not may have kept it waiting since the
 * turn before. */
static void turn_serves(struct loop *l) {
    struct loop_turn *t = &l->turn;
    if (t->first_ns || l->schedstat < 0)
        return;
    t->first_ns = clock_monotonic_ns();
    int64_t slept = t->first_ns - t->began_ns, stood = waited_ns(l) - t->waited_ns;
    if (slept > stood + at_once_ns)
        t->late_ns = stood + woken_ns;
    else
        t->late_ns += slept;
}

int64_t loop_late_ns(const struct loop *l) {
    const struct loop_turn *t = &l->turn;
    return l->schedstat < 0 || !t->first_ns ? 0 : t->late_ns + clock_monotonic_ns() - t->first_ns;
}

static int run_by_turns(struct loop *l) {
    int r;
    do {
        turn_begins(l);
        r = event_base_loop(l->base, EVLOOP_ONCE);
    } while (r == 0 && !event_base_got_break(l->base));
    return r;
}

int loop_run(struct loop *l, struct err *err) {
    int r = l->broken ? 0 : l->schedstat < 0 ? event_base_dispatch(l->base) : run_by_turns(l);
    if (l->broken)
        return err_set(err, l->broken, "watch a descriptor (fs.epoll.max_user_watches)");
    if (r >= 0)
        return 0;
    return err_set(err, errno ? -errno : -EIO, "run the event loop");
}

void loop_stop(struct loop *l) {
    event_base_loopbreak(l->base);
}

static void dispatch(evutil_socket_t fd, short what, void *arg) {
    struct loop_source *s = arg;
    turn_serves(s->loop);
    if (s->on_timer)
        s->on_timer(s->arg, clock_monotonic_ns());
    else if (s->on_signal)
        s->on_signal(s->arg, (int)fd);
    else
        s->on_fd(s->arg, (int)fd,
                 (what & EV_READ ? LOOP_READ : 0) | (what & EV_WRITE ? LOOP_WRITE : 0));
}

static struct loop_source *source_new(struct loop *l, int fd, short what, void *arg) {
    struct loop_source *s = mem_new(struct loop_source);
    s->loop = l;
    list_append(&l->sources, &s->link);
    s->fd = fd;
    s->arg = arg;
    s->event = event_new(l->base, fd, what, dispatch, s);
    if (!s->event)
        abort();
    return s;
}

/* What is not watched is waited for in vain: the loop ends. A regular file cannot be watched, which is
 * no such thing. */
static void watch(struct loop_source *s) {
    struct loop *l = s->loop;
    if (event_add(s->event, NULL) == 0 || (errno != ENOSPC && errno != ENOMEM))
        return;
    l->broken = -errno;
    event_base_loopbreak(l->base);
}

static short fd_flags(int what) {
    return (short)(EV_PERSIST | (what & LOOP_READ ? EV_READ : 0) |
                   (what & LOOP_WRITE ? EV_WRITE : 0));
}

struct loop_source *loop_fd(struct loop *l, int fd, int what, loop_fd_fn *fn, void *arg) {
    struct loop_source *s = source_new(l, fd, fd_flags(what), arg);
    s->on_fd = fn;
    if (what)
        watch(s);
    return s;
}

void loop_fd_set(struct loop_source *s, int what) {
    event_del(s->event);
    event_assign(s->event, s->loop->base, s->fd, fd_flags(what), dispatch, s);
    if (what)
        watch(s);
}

struct loop_source *loop_timer(struct loop *l, loop_timer_fn *fn, void *arg) {
    struct loop_source *s = source_new(l, -1, EV_TIMEOUT, arg);
    s->on_timer = fn;
    return s;
}

void loop_timer_at(struct loop_source *s, int64_t deadline_ns) {
    int64_t left_us = (deadline_ns - clock_monotonic_ns() + 999) / 1000;
    if (left_us < 0)
        left_us = 0;
    struct timeval tv = {.tv_sec = left_us / 1000000, .tv_usec = left_us % 1000000};
    event_base_update_cache_time(s->loop->base);
    event_add(s->event, &tv);
}

void loop_timer_off(struct loop_source *s) {
    event_del(s->event);
}

struct loop_source *loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *arg) {
    struct loop_source *s = source_new(l, signo, EV_SIGNAL | EV_PERSIST, arg);
    s->on_signal = fn;
    watch(s);
    return s;
}

struct loop_source *loop_source_free(struct loop_source *s) {
    if (!s)
        return NULL;
    list_remove(&s->link);
    event_free(s->event);
    free(s);
    return NULL;
}
