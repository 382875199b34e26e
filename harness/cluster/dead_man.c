#include "harness/cluster/dead_man.h"

#include "base/mem.h"
#include "base/sys/clock.h"

#include <poll.h>
#include <stdlib.h>

enum { BEATS = 5 };

/* Who comes so late has stood still, and with it most likely all of the machine. */
static int64_t late_ns(int64_t after_ns) {
    return after_ns / BEATS;
}

struct dead_man {
    struct loop_source *timer;
    int control;
    int64_t after_ns, heard_ns, due_ns;
    dead_man_fn *fn;
    void *arg;
};

int64_t dead_man_beat_ns(int64_t after_ns) {
    return after_ns / BEATS;
}

static void wait_until(struct dead_man *d, int64_t due_ns) {
    d->due_ns = due_ns;
    loop_timer_at(d->timer, due_ns);
}

static bool has_said_something(const struct dead_man *d) {
    struct pollfd p = {.fd = d->control, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

static void on_timer(void *arg, int64_t now_ns) {
    struct dead_man *d = arg;
    if (now_ns - d->due_ns > late_ns(d->after_ns) || has_said_something(d))
        wait_until(d, now_ns + d->after_ns);
    else
        d->fn(d->arg, now_ns - d->heard_ns);
}

struct dead_man *dead_man_new(struct loop *l, int control, int64_t after_ns, dead_man_fn *fn,
                              void *arg) {
    if (!after_ns)
        return NULL;
    struct dead_man *d = mem_new(struct dead_man);
    *d = (struct dead_man){.control = control, .after_ns = after_ns, .fn = fn, .arg = arg};
    d->timer = loop_timer(l, on_timer, d);
    dead_man_heard(d);
    return d;
}

void dead_man_heard(struct dead_man *d) {
    if (!d)
        return;
    d->heard_ns = clock_monotonic_ns();
    wait_until(d, d->heard_ns + d->after_ns);
}

struct dead_man *dead_man_free(struct dead_man *d) {
    if (d)
        loop_source_free(d->timer);
    free(d);
    return NULL;
}
