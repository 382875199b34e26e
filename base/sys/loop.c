#include "base/sys/loop.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/sys/clock.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>

/* Of LOOP_LAST, before it is looked whether there are others again: which costs more the more
 * sockets wait to be served. */
enum { LAST_AT_ONCE = 1024, LAST_US = 5000 };

struct loop {
    struct event_base *base;
    struct list sources;
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
    free(l);
    return NULL;
}

struct event_base *loop_base(struct loop *l) {
    return l->base;
}

int loop_run(struct loop *l, struct err *err) {
    if (event_base_dispatch(l->base) >= 0)
        return 0;
    return err_set(err, errno ? -errno : -EIO, "run the event loop");
}

void loop_stop(struct loop *l) {
    event_base_loopbreak(l->base);
}

static void dispatch(evutil_socket_t fd, short what, void *arg) {
    struct loop_source *s = arg;
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

static short fd_flags(int what) {
    return (short)(EV_PERSIST | (what & LOOP_READ ? EV_READ : 0) |
                   (what & LOOP_WRITE ? EV_WRITE : 0));
}

struct loop_source *loop_fd(struct loop *l, int fd, int what, loop_fd_fn *fn, void *arg) {
    struct loop_source *s = source_new(l, fd, fd_flags(what), arg);
    s->on_fd = fn;
    if (what)
        event_add(s->event, NULL);
    return s;
}

void loop_fd_set(struct loop_source *s, int what) {
    event_del(s->event);
    event_assign(s->event, s->loop->base, s->fd, fd_flags(what), dispatch, s);
    if (what)
        event_add(s->event, NULL);
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
    event_add(s->event, NULL);
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
