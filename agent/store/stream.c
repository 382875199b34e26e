#include "agent/store/stream.h"

#include "agent/store/limits/crowd.h"
#include "agent/store/limits/flow.h"
#include "agent/store/watch.h"
#include "base/list.h"
#include "base/mem.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <stdlib.h>

/* Events per line: a newcomer that reads a long history gets it in pieces. */
enum { BATCH_MAX = 512 };

struct stream {
    struct list node;
    struct streams *all;
    struct evhttp_request *req;
    struct watch watch;
    struct flow_item item;
    bool counted; /* among the ranges */
};

struct streams {
    struct stream_parts of;
    struct list list;
    size_t count, n_ranges;
};

struct streams *streams_new(const struct stream_parts *of) {
    struct streams *s = mem_new(struct streams);
    s->of = *of;
    list_init(&s->list);
    return s;
}

size_t streams_count(const struct streams *s) {
    return s->count;
}

bool streams_have_room(const struct streams *s, const struct gateway_watch *w, bool agent) {
    return agent || !w->range_end.len || s->n_ranges < STREAM_RANGES_MAX;
}

static struct evhttp_connection *connection(const struct stream *st) {
    return evhttp_request_get_connection(st->req);
}

static void stream_free(struct stream *st) {
    st->all->count--;
    st->all->n_ranges -= st->counted;
    list_remove(&st->node);
    flow_remove(&st->item);
    watch_close(&st->watch);
    free(st);
}

struct streams *streams_free(struct streams *s) {
    if (!s)
        return NULL;
    list_each_safe(it, next, &s->list) {
        struct stream *st = list_entry(it, struct stream, node);
        if (connection(st))
            crowd_on_close(s->of.crowd, connection(st), NULL, NULL);
        stream_free(st);
    }
    free(s);
    return NULL;
}

/* The client hung up. A request that evhttp has already taken off its connection is ours to free.
 */
static void on_close(struct evhttp_connection *c, void *arg) {
    struct stream *st = arg;
    if (!connection(st))
        evhttp_request_free(st->req);
    stream_free(st);
}

static void send_line(struct stream *st, const struct gateway_line *line) {
    BUF_FINI struct buf text = {0};
    struct evbuffer *out = evbuffer_new();
    if (!out)
        abort();
    gateway_put_line(&text, line);
    evbuffer_add(out, text.data, text.len);
    evhttp_send_reply_chunk(st->req, out);
    evbuffer_free(out);
}

/* Says why and ends the answer; the connection may be used again. Who does not take what was sent
 * before cannot be told: its connection ends. */
static void stream_cancel(struct stream *st, int64_t compact_revision) {
    struct crowd *crowd = st->all->of.crowd;
    struct gateway_line line = {.revision = kv_revision(st->all->of.kv),
                                .canceled = true,
                                .compact_revision = compact_revision};
    if (st->item.held) {
        watch_close(&st->watch);
        flow_remove(&st->item);
        crowd_end(crowd, connection(st));
        return;
    }
    send_line(st, &line);
    crowd_on_close(crowd, connection(st), NULL, NULL);
    evhttp_send_reply_end(st->req);
    stream_free(st);
}

static bool produce(struct flow_item *i, struct buf *out) {
    struct stream *st = list_entry(i, struct stream, item);
    struct kv *kv = st->all->of.kv;
    ARENA_FINI struct arena arena = {0};
    struct gateway_line line = {.revision = kv_revision(kv)};
    int rc = kv_watch_take(st->watch.kv, BATCH_MAX, &arena, &line.events, &line.n_events);
    if (rc == 0 && line.n_events)
        gateway_put_line(out, &line);
    if (rc != 0)
        stream_cancel(st, kv_compact_revision(kv));
    return rc == 0 && line.n_events;
}

static void on_taken(struct flow_item *i) {
    struct stream *st = list_entry(i, struct stream, item);
    if (kv_watch_is_behind(st->watch.kv))
        flow_want(i);
}

static void tell_slow(const struct stream *st) {
    const struct stream_parts *of = &st->all->of;
    of->slow(of->arg, crowd_address(of->crowd, connection(st)));
}

static void on_cut(struct flow_item *i) {
    struct stream *st = list_entry(i, struct stream, item);
    tell_slow(st);
    watch_close(&st->watch);
    crowd_end(st->all->of.crowd, connection(st));
}

static const struct flow_ops OPS = {.produce = produce, .taken = on_taken, .cut = on_cut};

static void on_due(struct watch *w) {
    struct stream *st = list_entry(w, struct stream, watch);
    if (st->item.held && kv_watch_is_lost(w->kv)) {
        tell_slow(st);
        stream_cancel(st, kv_compact_revision(st->all->of.kv));
    } else {
        flow_want(&st->item);
    }
}

void streams_open(struct streams *s, struct evhttp_request *req, const struct gateway_watch *w) {
    struct stream *st = mem_new(struct stream);
    st->all = s;
    st->req = req;
    bool agent = crowd_rank_of(s->of.crowd, connection(st)) == CROWD_AGENT;
    flow_add(s->of.flow, &st->item, &OPS, req, agent);
    watch_open(&st->watch, s->of.kv, w->key, w->range_end, w->start_revision, on_due);
    list_append(&s->list, &st->node);
    s->count++;
    st->counted = !agent && w->range_end.len;
    s->n_ranges += st->counted;
    crowd_on_close(s->of.crowd, connection(st), on_close, st);
    /* A watch may be quiet for hours: no idle timeout, the kernel's keepalive sees a lost host. */
    bufferevent_set_timeouts(evhttp_connection_get_bufferevent(connection(st)), NULL, NULL);
    evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", "application/json");
    evhttp_send_reply_start(req, 200, NULL);
    struct gateway_line created = {.revision = kv_revision(s->of.kv), .created = true};
    send_line(st, &created);
}

void streams_send(struct streams *s) {
    watch_tell(s->of.kv);
}
