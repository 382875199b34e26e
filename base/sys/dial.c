#include "base/sys/dial.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ADDRESSES_MAX = LOOKUP_MAX };
static const int64_t HEAD_START_NS = 250000000, GOOD_NS = 60000000000, STALE_NS = 1000000000;

struct dialer {
    struct loop *loop;
    struct tcp_endpoint to;
    struct list dials;
    bool number; /* found is what it will always be */
    bool failed; /* none of found has answered */
    int64_t known_ns;
    struct tcp_address found[ADDRESSES_MAX];
    int n; /* 0: not known yet, or why says that there are none */
    char why[sizeof(((struct err *)NULL)->msg)];
    struct lookup *lookup; /* NULL: none is under way */
};

struct dial_attempt {
    struct dial *dial;
    int fd;
    struct loop_source *source;
};

struct dial {
    struct list node;
    struct dialer *dialer;
    dial_fn *fn;
    void *arg;
    bool waits; /* for the look-up */
    struct tcp_address to[ADDRESSES_MAX];
    int n, begun, open;
    struct dial_attempt attempts[ADDRESSES_MAX];
    struct loop_source *timer; /* the next attempt is due, or the end */
    char why[sizeof(((struct err *)NULL)->msg)];
};

/* ---- names ---- */

static void know(struct dialer *d, const struct tcp_address *found, int n, const char *why) {
    d->n = n > 0 ? n : 0;
    for (int i = 0; i < d->n; i++)
        d->found[i] = found[i];
    d->failed = n <= 0;
    d->known_ns = clock_monotonic_ns();
    str_copy(d->why, sizeof(d->why), why);
}

static bool is_known(const struct dialer *d) {
    int64_t age_ns = clock_monotonic_ns() - d->known_ns;
    return d->number || (d->known_ns && age_ns < (d->failed ? STALE_NS : GOOD_NS));
}

static void dial_start(struct dial *d);

static void start_all(struct dialer *d) {
    list_each(it, &d->dials) {
        struct dial *one = list_entry(it, struct dial, node);
        if (one->waits)
            dial_start(one);
    }
}

static void on_answer(void *arg, const struct tcp_address *found, int n, const char *why) {
    struct dialer *d = arg;
    d->lookup = NULL;
    know(d, found, n, why);
    start_all(d);
}

/* Without a thread nobody waits for ever: all are told. */
static void look_up_in_thread(struct dialer *d) {
    struct err err = {0};
    d->lookup = lookup_begin(d->loop, &d->to, on_answer, d, &err);
    if (d->lookup)
        return;
    know(d, NULL, 0, err.msg);
    start_all(d);
}

struct dialer *dialer_new(struct loop *l, const struct tcp_endpoint *to) {
    struct dialer *d = mem_new(struct dialer);
    *d = (struct dialer){.loop = l, .to = *to};
    list_init(&d->dials);
    d->n = tcp_resolve_number(to, d->found, ADDRESSES_MAX);
    d->number = d->n > 0;
    return d;
}

struct dialer *dialer_free(struct dialer *d) {
    if (!d)
        return NULL;
    list_each_safe(it, next, &d->dials) dial_cancel(list_entry(it, struct dial, node));
    lookup_cancel(d->lookup);
    free(d);
    return NULL;
}

/* ---- attempts ---- */

static void attempt_close(struct dial_attempt *a) {
    if (!a->source)
        return;
    a->source = loop_source_free(a->source);
    file_close(&a->fd);
    a->dial->open--;
}

/* The first that says more than that this host has no way there. */
static void note(struct dial *d, int code) {
    bool says_little = code == -ENETUNREACH || code == -EAFNOSUPPORT || code == -EADDRNOTAVAIL;
    if (d->why[0] && says_little)
        return;
    struct err err;
    err_set(&err, code, "cannot connect to %s port %u", d->dialer->to.host, d->dialer->to.port);
    str_copy(d->why, sizeof(d->why), err.msg);
}

static void tell(struct dial *d, int fd) {
    struct dial end = *d;
    if (fd < 0)
        d->dialer->failed = true;
    dial_cancel(d);
    end.fn(end.arg, fd, fd < 0 ? end.why : "");
}

static void on_attempt(void *arg, int fd, int what);

/* Where none is left, the end is told from the loop. */
static void try_next(struct dial *d) {
    while (d->begun < d->n) {
        struct dial_attempt *a = &d->attempts[d->begun];
        int code = tcp_connect(&d->to[d->begun++], &a->fd);
        if (code < 0) {
            note(d, code);
            continue;
        }
        a->dial = d;
        a->source = loop_fd(d->dialer->loop, a->fd, LOOP_WRITE, on_attempt, a);
        d->open++;
        if (d->begun < d->n)
            loop_timer_at(d->timer, clock_monotonic_ns() + HEAD_START_NS);
        return;
    }
    if (!d->open)
        loop_timer_at(d->timer, 0);
}

static void on_attempt(void *arg, int fd, int what) {
    struct dial_attempt *a = arg;
    struct dial *d = a->dial;
    int code = tcp_connected(fd);
    if (code == 0) {
        a->source = loop_source_free(a->source);
        a->fd = -1;
        tell(d, fd);
        return;
    }
    attempt_close(a);
    note(d, code);
    try_next(d);
}

static void on_timer(void *arg, int64_t now_ns) {
    struct dial *d = arg;
    if (d->begun < d->n)
        try_next(d);
    else if (!d->open)
        tell(d, -1);
}

static void dial_start(struct dial *d) {
    d->waits = false;
    d->n = d->dialer->n;
    for (int i = 0; i < d->n; i++)
        d->to[i] = d->dialer->found[i];
    if (!d->n)
        str_copy(d->why, sizeof(d->why), d->dialer->why);
    try_next(d);
}

struct dial *dial_begin(struct dialer *dialer, dial_fn *fn, void *arg) {
    struct dial *d = mem_new(struct dial);
    *d = (struct dial){.dialer = dialer, .fn = fn, .arg = arg, .waits = true};
    d->timer = loop_timer(dialer->loop, on_timer, d);
    list_append(&dialer->dials, &d->node);
    if (is_known(dialer))
        dial_start(d);
    else if (!dialer->lookup)
        look_up_in_thread(dialer);
    return d;
}

struct dial *dial_cancel(struct dial *d) {
    if (!d)
        return NULL;
    for (int i = 0; i < d->begun; i++)
        attempt_close(&d->attempts[i]);
    list_remove(&d->node);
    loop_source_free(d->timer);
    free(d);
    return NULL;
}

const char *dial_doing(const struct dial *d) {
    static char text[TCP_HOST_MAX + 32];
    const struct tcp_endpoint *to = &d->dialer->to;
    if (d->waits)
        snprintf(text, sizeof(text), "looking up host '%s'", to->host);
    else
        snprintf(text, sizeof(text), "connecting to %s port %u", to->host, to->port);
    return text;
}
