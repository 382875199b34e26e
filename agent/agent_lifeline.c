#include "agent/agent_lifeline.h"

#include "agent/core/lifeline.h"
#include "agent/options.h"
#include "agent/store/lifelines.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/dial.h"
#include "base/sys/file.h"
#include "base/sys/tcp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SILENCE_S = 20 };

struct agent_lifeline {
    struct loop *loop;
    const char *run_id;
    const struct store_access *access;
    agent_event_fn *fn;
    void *arg;
    struct dialer *dialer;
    struct dial *dial; /* NULL: it is not being opened */
    int fd;            /* -1: it is not open */
    struct loop_source *source;
    uint64_t id;
    struct lifeline_claim claim;
};

struct agent_lifeline *agent_lifeline_new(struct loop *loop, const struct options *o,
                                          agent_event_fn *fn, void *arg) {
    struct tcp_endpoint e = {.port = (uint16_t)o->endpoint_port};
    struct agent_lifeline *l = mem_new(struct agent_lifeline);
    *l = (struct agent_lifeline){.loop = loop, .run_id = o->run_id, .fn = fn, .arg = arg, .fd = -1};
    l->access = &o->rdzv.access;
    str_copy(e.host, sizeof(e.host), o->endpoint_host);
    l->dialer = dialer_new(loop, &e);
    return l;
}

/* It may be held by workers: its end must prove nothing. */
static void discard(struct agent_lifeline *l) {
    l->dial = dial_cancel(l->dial);
    l->source = loop_source_free(l->source);
    tcp_close_as_broken(&l->fd);
}

/* The agent ends, and its copy with it: the last holder's end is the end. */
struct agent_lifeline *agent_lifeline_free(struct agent_lifeline *l) {
    if (!l)
        return NULL;
    loop_source_free(l->source);
    file_close(&l->fd);
    dialer_free(l->dialer);
    free(l);
    return NULL;
}

static void tell(struct agent_lifeline *l, bool open) {
    struct event e = {.kind = EVENT_LIFELINE, .lifeline = {.id = l->id, .open = open}};
    l->fn(l->arg, &e);
}

/* Nothing is ever to be read: whatever comes, it is none any more. */
static void on_readable(void *arg, int fd, int what) {
    struct agent_lifeline *l = arg;
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

static void on_connected(void *arg, int fd, const char *why) {
    struct agent_lifeline *l = arg;
    l->dial = NULL;
    l->fd = fd;
    if (fd >= 0)
        tcp_bound_silence(fd, SILENCE_S);
    if (fd >= 0 && send_claim(l))
        l->source = loop_fd(l->loop, fd, LOOP_READ, on_readable, l);
    else
        discard(l);
    tell(l, l->fd >= 0);
}

void agent_lifeline_do(struct agent_lifeline *l, const struct action *a) {
    discard(l);
    if (a->kind == ACTION_LIFELINE_DROP)
        return;
    l->id = a->lifeline.id;
    l->claim = a->lifeline.claim;
    l->dial = dial_begin(l->dialer, on_connected, l);
}

int agent_lifeline_fd(const struct agent_lifeline *l) {
    return l && l->fd >= 0 ? l->fd : 0;
}
