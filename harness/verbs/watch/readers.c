#include "harness/verbs/watch/readers.h"

#include "base/list.h"
#include "base/mem.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdlib.h>

/* Who takes nothing for so long is let go. */
enum { TAKES_NOTHING_S = 30 };

struct page_reader {
    struct list node;
    struct readers *all;
    struct evhttp_connection *connection;
    struct evhttp_request *req;
    uint64_t told;
    bool taking; /* what he was told is on its way */
    bool ended;  /* the request is evhttp's again */
};

struct readers {
    struct list list;
    size_t count;
    struct buf text; /* the newest event */
    uint64_t serial;
    bool last;
    void (*empty)(void *arg);
    void *arg;
};

struct readers *readers_new(void (*empty)(void *arg), void *arg) {
    struct readers *r = mem_new(struct readers);
    *r = (struct readers){.empty = empty, .arg = arg};
    list_init(&r->list);
    return r;
}

size_t readers_count(const struct readers *r) {
    return r->count;
}

static void reader_free(struct page_reader *d) {
    d->all->count--;
    list_remove(&d->node);
    free(d);
}

struct readers *readers_free(struct readers *r) {
    if (!r)
        return NULL;
    list_each_safe(it, next, &r->list) {
        struct page_reader *d = list_entry(it, struct page_reader, node);
        evhttp_connection_set_closecb(d->connection, NULL, NULL);
        reader_free(d);
    }
    buf_fini(&r->text);
    free(r);
    return NULL;
}

/* He has gone, or was let go. A request that evhttp has taken off its connection is ours to free. */
static void on_close(struct evhttp_connection *c, void *arg) {
    struct page_reader *d = arg;
    struct readers *all = d->all;
    if (!d->ended && !evhttp_request_get_connection(d->req))
        evhttp_request_free(d->req);
    reader_free(d);
    if (!all->count)
        all->empty(all->arg);
}

static void go_on(struct page_reader *d);

static void on_taken(struct evhttp_connection *c, void *arg) {
    struct page_reader *d = arg;
    d->taking = false;
    go_on(d);
}

static void send_newest(struct page_reader *d) {
    struct evbuffer *out = evbuffer_new();
    if (!out)
        abort(); /* out of memory */
    evbuffer_add(out, d->all->text.data, d->all->text.len);
    d->told = d->all->serial;
    d->taking = true;
    evhttp_send_reply_chunk_with_cb(d->req, out, on_taken, d);
    evbuffer_free(out);
}

static void go_on(struct page_reader *d) {
    if (d->taking || d->ended)
        return;
    if (d->told != d->all->serial) {
        send_newest(d);
    } else if (d->all->last) {
        d->ended = true; /* "Connection: close": on_close comes when the end is sent */
        evhttp_send_reply_end(d->req);
    }
}

bool readers_add(struct readers *r, struct evhttp_request *req) {
    static const struct timeval patience = {.tv_sec = TAKES_NOTHING_S};
    struct evhttp_connection *c = evhttp_request_get_connection(req);
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    if (r->count >= READERS_MAX)
        return false;
    struct page_reader *d = mem_new(struct page_reader);
    *d = (struct page_reader){.all = r, .connection = c, .req = req};
    list_append(&r->list, &d->node);
    r->count++;
    evhttp_connection_set_closecb(c, on_close, d);
    bufferevent_set_timeouts(evhttp_connection_get_bufferevent(c), NULL, &patience);
    evhttp_add_header(headers, "Content-Type", "text/event-stream");
    evhttp_add_header(headers, "Connection", "close");
    evhttp_send_reply_start(req, HTTP_OK, "OK");
    go_on(d);
    return true;
}

void readers_tell(struct readers *r, const struct buf *object, bool last) {
    buf_clear(&r->text);
    buf_printf(&r->text, "id: %" PRIu64 "\ndata: ", ++r->serial);
    buf_put(&r->text, object->data, object->len);
    buf_puts(&r->text, "\n\n");
    r->last = last;
    list_each_safe(it, next, &r->list) go_on(list_entry(it, struct page_reader, node));
}
