#include "agent/agent_lifeline.h"

#include "agent/base/str.h"
#include "agent/core/lifeline.h"
#include "agent/options.h"
#include "agent/store/lifelines.h"
#include "agent/sys/clock.h"
#include "agent/sys/tcp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { ADDRESSES_MAX = 4, SILENCE_S = 20 };

struct agent_lifeline {
    struct loop *loop;
    const char *run_id;
    const struct store_access *access;
    agent_event_fn *fn;
    void *arg;
    struct tcp_address addresses[ADDRESSES_MAX];
    int n, at; /* the address that is tried */
    int fd;    /* -1: none */
    bool open;
    struct loop_source *source, *failed; /* failed: due when the attempt is to be told as failed */
    uint64_t id;
    struct lifeline_claim claim;
};

static void on_failed(void *arg, int64_t now_ns);

struct agent_lifeline *agent_lifeline_new(struct loop *loop, const struct options *o,
                                          agent_event_fn *fn, void *arg, struct err *err) {
    struct tcp_endpoint e = {.port = (uint16_t)o->endpoint_port};
    struct agent_lifeline *l = calloc(1, sizeof(*l));
    if (!l)
        abort();
    *l = (struct agent_lifeline){.loop = loop, .run_id = o->run_id, .fn = fn, .arg = arg, .fd = -1};
    l->access = &o->rdzv.access;
    str_copy(e.host, sizeof(e.host), o->endpoint_host);
    l->n = tcp_resolve(&e, l->addresses, ADDRESSES_MAX, err);
    if (l->n <= 0) {
        free(l);
        return NULL;
    }
    l->failed = loop_timer(loop, on_failed, l);
    return l;
}

/* It may be held by workers: its end must prove nothing. */
static void discard(struct agent_lifeline *l) {
    l->source = loop_source_free(l->source);
    tcp_close_as_broken(&l->fd);
    l->open = false;
}

/* The agent ends: its copy goes as everything of it goes, and the last holder's end is the end. */
struct agent_lifeline *agent_lifeline_free(struct agent_lifeline *l) {
    if (!l)
        return NULL;
    l->source = loop_source_free(l->source);
    l->failed = loop_source_free(l->failed);
    free(l);
    return NULL;
}

static void tell(struct agent_lifeline *l, bool open) {
    struct event e = {.kind = EVENT_LIFELINE, .lifeline = {.id = l->id, .open = open}};
    l->fn(l->arg, &e);
}

static void on_failed(void *arg, int64_t now_ns) {
    (void)now_ns;
    tell(arg, false);
}

/* Nothing is ever to be read: whatever comes, it is none any more. */
static void on_readable(void *arg, int fd, int what) {
    struct agent_lifeline *l = arg;
    (void)fd, (void)what;
    discard(l);
    tell(l, false);
}

/* The claim goes out whole or not at all: the connection is new. */
static bool send_claim(struct agent_lifeline *l) {
    char own[TCP_ENDS_MAX], peer[TCP_ENDS_MAX];
    struct buf request = {0};
    if (tcp_ends(l->fd, own, peer) < 0)
        return false;
    struct lifeline_ends ends = {.from = own, .to = peer};
    lifelines_put_request(&request, l->run_id, &l->claim, &ends, store_access_token(l->access));
    ssize_t sent = send(l->fd, request.data, request.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    bool whole = sent == (ssize_t)request.len;
    buf_fini(&request);
    return whole;
}

static void attempt(struct agent_lifeline *l);

static void on_connected(void *arg, int fd, int what) {
    struct agent_lifeline *l = arg;
    (void)what;
    bool good = tcp_connected(fd) == 0 && send_claim(l);
    l->source = loop_source_free(l->source);
    if (!good) {
        tcp_close_as_broken(&l->fd);
        l->at++;
        attempt(l);
        return;
    }
    l->open = true;
    l->source = loop_fd(l->loop, l->fd, LOOP_READ, on_readable, l);
    tell(l, true);
}

/* One address after the other; the core is told of the last one's failure, on another turn. */
static void attempt(struct agent_lifeline *l) {
    for (; l->at < l->n; l->at++) {
        if (tcp_connect(&l->addresses[l->at], &l->fd) < 0)
            continue;
        tcp_bound_silence(l->fd, SILENCE_S);
        l->source = loop_fd(l->loop, l->fd, LOOP_WRITE, on_connected, l);
        return;
    }
    loop_timer_at(l->failed, clock_monotonic_ns());
}

void agent_lifeline_do(struct agent_lifeline *l, const struct action *a) {
    discard(l);
    loop_timer_off(l->failed);
    if (a->kind == ACTION_LIFELINE_DROP)
        return;
    l->id = a->lifeline.id;
    l->claim = a->lifeline.claim;
    l->at = 0;
    attempt(l);
}

int agent_lifeline_fd(const struct agent_lifeline *l) {
    return l && l->open ? l->fd : 0;
}
