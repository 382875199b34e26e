#include "agent/store/stream.h"

#include "agent/base/list.h"
#include "agent/store/watch.h"

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
};

struct streams {
    struct kv *kv;
    struct list list;
    size_t count;
};

struct streams *streams_new(struct kv *kv) {
    struct streams *s = calloc(1, sizeof(*s));
    if (!s)
        abort();
    s->kv = kv;
    list_init(&s->list);
    return s;
}

size_t streams_count(const struct streams *s) {
    return s->count;
}

static struct evhttp_connection *connection(const struct stream *st) {
    return evhttp_request_get_connection(st->req);
}

static void stream_free(struct stream *st) {
    st->all->count--;
    list_remove(&st->node);
    watch_close(&st->watch);
    free(st);
}

struct streams *streams_free(struct streams *s) {
    if (!s)
        return NULL;
    list_each_safe(it, next, &s->list) {
        struct stream *st = list_entry(it, struct stream, node);
        if (connection(st))
            evhttp_connection_set_closecb(connection(st), NULL, NULL);
        stream_free(st);
    }
    free(s);
    return NULL;
}

/* The client hung up. A request that evhttp has already taken off its connection is ours to free.
 */
static void on_close(struct evhttp_connection *c, void *arg) {
    struct stream *st = arg;
    (void)c;
    if (!connection(st))
        evhttp_request_free(st->req);
    stream_free(st);
}

static void send_line(struct stream *st, const struct gateway_line *line) {
    struct buf text = {0};
    struct evbuffer *out = evbuffer_new();
    if (!out)
        abort();
    gateway_put_line(&text, line);
    evbuffer_add(out, text.data, text.len);
    evhttp_send_reply_chunk(st->req, out);
    evbuffer_free(out);
    buf_fini(&text);
}

/* Says why and ends the answer; the connection may be used again. */
static void stream_cancel(struct stream *st, int64_t compact_revision) {
    struct gateway_line line = {.revision = kv_revision(st->all->kv),
                                .canceled = true,
                                .compact_revision = compact_revision};
    send_line(st, &line);
    evhttp_connection_set_closecb(connection(st), NULL, NULL);
    evhttp_send_reply_end(st->req);
    stream_free(st);
}

static size_t backlog(const struct stream *st) {
    struct bufferevent *b = evhttp_connection_get_bufferevent(connection(st));
    return evbuffer_get_length(bufferevent_get_output(b));
}

static void stream_send(struct watch *w) {
    struct stream *st = list_entry(w, struct stream, watch);
    struct arena arena = {0};
    struct gateway_line line = {.revision = kv_revision(st->all->kv)};
    if (kv_watch_take(st->watch.kv, BATCH_MAX, &arena, &line.events, &line.n_events) != 0)
        stream_cancel(st, kv_compact_revision(st->all->kv));
    else if (backlog(st) > STREAM_BACKLOG_MAX)
        stream_cancel(st, 0);
    else if (line.n_events)
        send_line(st, &line);
    arena_fini(&arena);
}

void streams_open(struct streams *s, struct evhttp_request *req, const struct gateway_watch *w) {
    struct stream *st = calloc(1, sizeof(*st));
    if (!st)
        abort();
    st->all = s;
    st->req = req;
    watch_open(&st->watch, s->kv, w->key, w->range_end, w->start_revision, stream_send);
    list_append(&s->list, &st->node);
    s->count++;
    evhttp_connection_set_closecb(connection(st), on_close, st);
    /* A watch may be quiet for hours: no idle timeout, the kernel's keepalive sees a lost host. */
    bufferevent_set_timeouts(evhttp_connection_get_bufferevent(connection(st)), NULL, NULL);
    evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", "application/json");
    evhttp_send_reply_start(req, 200, NULL);
    struct gateway_line created = {.revision = kv_revision(s->kv), .created = true};
    send_line(st, &created);
}

void streams_send(struct streams *s) {
    watch_tell(s->kv);
}
