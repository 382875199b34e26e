#include "agent/store/reply.h"

#include "agent/store/limits/crowd.h"
#include "agent/store/limits/flow.h"
#include "base/list.h"
#include "base/mem.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>

struct reply {
    struct list node;
    struct replies *all;
    struct flow_item item;
    struct answer answer;
    struct evhttp_request *req;
    bool agent, written; /* written: the last piece is on its way */
};

struct replies {
    struct stream_parts of;
    struct list list;
    size_t held; /* keys, of others than agents */
};

static struct evhttp_connection *connection(const struct reply *r) {
    return evhttp_request_get_connection(r->req);
}

static void reply_free(struct reply *r) {
    if (!r->agent)
        r->all->held -= r->answer.hold->n;
    flow_remove(&r->item);
    answer_fini(&r->answer, r->all->of.kv);
    list_remove(&r->node);
    free(r);
}

/* As in agent/store/stream.c: a request that is off its connection is ours to free. */
static void on_close(struct evhttp_connection *c, void *arg) {
    struct reply *r = arg;
    if (!connection(r))
        evhttp_request_free(r->req);
    reply_free(r);
}

static bool produce(struct flow_item *i, struct buf *out) {
    struct reply *r = list_entry(i, struct reply, item);
    if (r->answer.body.len) {
        *out = r->answer.body;
        r->answer.body = (struct buf){0};
    } else {
        r->written = answer_more(&r->answer, out);
    }
    return true;
}

static void on_taken(struct flow_item *i) {
    struct reply *r = list_entry(i, struct reply, item);
    struct evhttp_request *req = r->req;
    if (!r->written) {
        flow_want(i);
        return;
    }
    crowd_on_close(r->all->of.crowd, connection(r), NULL, NULL);
    reply_free(r);
    evhttp_send_reply_end(req);
}

/* It is freed when its connection is. */
static void on_cut(struct flow_item *i) {
    struct reply *r = list_entry(i, struct reply, item);
    const struct stream_parts *of = &r->all->of;
    of->slow(of->arg, crowd_address(of->crowd, connection(r)));
    crowd_end(of->crowd, connection(r));
}

static const struct flow_ops OPS = {.produce = produce, .taken = on_taken, .cut = on_cut};

void reply_send_text(struct evhttp_request *req, int status, const struct buf *body,
                     const char *type) {
    evbuffer_add(evhttp_request_get_output_buffer(req), body->data, body->len);
    evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", type);
    evhttp_send_reply(req, status, NULL, NULL);
}

static void send_in_pieces(struct replies *all, struct evhttp_request *req, struct answer *a) {
    struct reply *r = mem_new(struct reply);
    struct evhttp_connection *c = evhttp_request_get_connection(req);
    r->all = all;
    r->req = req;
    r->answer = *a;
    r->agent = crowd_rank_of(all->of.crowd, c) == CROWD_AGENT;
    list_append(&all->list, &r->node);
    if (!r->agent)
        all->held += a->hold->n;
    flow_add(all->of.flow, &r->item, &OPS, req, r->agent);
    crowd_on_close(all->of.crowd, c, on_close, r);
    evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", "application/json");
    evhttp_send_reply_start(req, a->status, NULL);
    flow_want(&r->item);
}

void reply_send(struct replies *all, struct evhttp_request *req, struct answer *a) {
    if (a->more) {
        send_in_pieces(all, req, a);
        return;
    }
    reply_send_text(req, a->status, &a->body, "application/json");
    answer_fini(a, all->of.kv);
}

struct replies *replies_new(const struct stream_parts *of) {
    struct replies *r = mem_new(struct replies);
    r->of = *of;
    list_init(&r->list);
    return r;
}

struct replies *replies_free(struct replies *all) {
    if (!all)
        return NULL;
    list_each_safe(it, next, &all->list) {
        struct reply *r = list_entry(it, struct reply, node);
        if (connection(r))
            crowd_on_close(all->of.crowd, connection(r), NULL, NULL);
        reply_free(r);
    }
    free(all);
    return NULL;
}

size_t replies_held(const struct replies *r) {
    return r->held;
}
