#include "harness/verbs/watch/web.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/random.h"
#include "harness/run/hand.h"
#include "harness/verbs/watch/watch_page.h"
#include "harness/verbs/watch/presses.h"
#include "harness/verbs/watch/readers.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BACKLOG = 64, IDLE_S = 10, HEADERS_MAX = 8192, BODY_MAX = 4096 };
static const int64_t redraw_ns = 100000000, refused_ns = 1000000000;
/* Of the last state, for a page that does not take it. */
static const int64_t farewell_ns = 5000000000;

struct web {
    struct loop *loop;
    const struct folder *run;
    struct web_door door;
    char host[TCP_HOST_MAX], nonce[DOOR_TOKEN];
    struct evhttp *http;
    struct evconnlistener *listener;
    struct readers *readers;
    struct presses *presses;
    struct loop_source *due, *relief, *farewell;
    const struct lanes *lanes; /* NULL: nothing is known yet */
    int64_t drawn_ns;
    bool waits, ended;
    char why[400];
    void (*told)(void *arg);
    void *arg;
};

/* ---- answers ---- */

/* A page of somebody else's neither shows ours in a frame nor reads it, and ours asks nobody else. */
static void put_headers(struct web *w, struct evhttp_request *req, const char *type) {
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    ARENA_FINI struct arena a = {0};
    evhttp_add_header(h, "Content-Type", type);
    evhttp_add_header(h, "Cache-Control", "no-store");
    evhttp_add_header(h, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(h, "Referrer-Policy", "same-origin");
    evhttp_add_header(h, "Cross-Origin-Resource-Policy", "same-origin");
    evhttp_add_header(h, "Content-Security-Policy",
                      arena_printf(&a,
                                   "default-src 'none'; style-src 'nonce-%s'; script-src "
                                   "'nonce-%s'; img-src data:; connect-src 'self'; base-uri "
                                   "'none'; form-action 'none'; frame-ancestors 'none'",
                                   w->nonce, w->nonce));
}

static void answer(struct evhttp_request *req, int status, const char *phrase,
                   const struct buf *body) {
    struct evbuffer *out = evbuffer_new();
    if (!out)
        abort(); /* out of memory */
    evbuffer_add(out, body->data, body->len);
    evhttp_send_reply(req, status, phrase, out);
    evbuffer_free(out);
}

static void answer_object(struct web *w, struct evhttp_request *req, int status, const char *text) {
    BUF_FINI struct buf body = {0};
    struct json_writer j = {.out = &body};
    json_object(&j, NULL);
    json_put_bool(&j, "done", status == HTTP_OK);
    json_put_string(&j, "text", text);
    json_end_object(&j);
    buf_puts(&body, "\n");
    put_headers(w, req, "application/json");
    answer(req, status, status == HTTP_OK ? "OK" : "Refused", &body);
}

static void answer_page(struct web *w, struct evhttp_request *req) {
    BUF_FINI struct buf body = {0};
    watch_page(w->nonce, &body);
    put_headers(w, req, "text/html; charset=utf-8");
    answer(req, HTTP_OK, "OK", &body);
}

/* ---- the state ---- */

static void put_state(const struct web *w, struct buf *out) {
    struct json_writer j = {.out = out};
    json_object(&j, NULL);
    json_put_bool(&j, "words", !w->ended && folder_has(w->run, hand_socket));
    json_put_bool(&j, "ended", w->ended);
    json_put_string(&j, "why", w->why);
    json_put_string(&j, "run", w->run->path);
    buf_puts(out, ",\"shows\":");
    if (w->lanes)
        lanes_object(w->lanes, out);
    else
        buf_puts(out, "null");
    json_end_object(&j);
}

static void draw(struct web *w) {
    BUF_FINI struct buf state = {0};
    put_state(w, &state);
    readers_tell(w->readers, &state, w->ended);
    w->drawn_ns = clock_monotonic_ns();
    w->waits = false;
}

static void on_due(void *arg, int64_t now) {
    draw(arg);
}

void web_changed(struct web *w, const struct lanes *lanes) {
    w->lanes = lanes;
    if (!lanes) {
        w->waits = false;
        loop_timer_off(w->due);
    } else if (!w->waits) {
        w->waits = true;
        loop_timer_at(w->due, w->drawn_ns + redraw_ns);
    }
}

/* ---- the end ---- */

static void on_empty(void *arg) {
    struct web *w = arg;
    if (w->ended)
        w->told(w->arg);
}

static void on_farewell(void *arg, int64_t now) {
    struct web *w = arg;
    w->told(w->arg);
}

void web_end(struct web *w, const char *why) {
    w->ended = true;
    str_copy(w->why, sizeof(w->why), why);
    bool nobody = !readers_count(w->readers);
    loop_timer_off(w->due);
    loop_timer_at(w->farewell, clock_monotonic_ns() + farewell_ns);
    draw(w);
    if (nobody)
        on_empty(w);
}

/* ---- requests ---- */

/* Who has pressed a button, until the run answers; the connection may close meanwhile. */
struct asker {
    struct web *web;
    struct evhttp_connection *connection; /* NULL: closed */
    struct evhttp_request *req;
};

static void on_asker_gone(struct evhttp_connection *c, void *arg) {
    struct asker *a = arg;
    if (!evhttp_request_get_connection(a->req))
        evhttp_request_free(a->req);
    a->connection = NULL;
}

static void on_said(void *arg, enum press_end end, const char *text) {
    static const int statuses[] = {[PRESS_DONE] = HTTP_OK,
                                   [PRESS_REFUSED] = 422,
                                   [PRESS_NOT_TAKEN] = 409,
                                   [PRESS_BUSY] = HTTP_SERVUNAVAIL,
                                   [PRESS_GONE] = 502};
    struct asker *a = arg;
    if (a->connection) {
        evhttp_connection_set_closecb(a->connection, NULL, NULL);
        answer_object(a->web, a->req, statuses[end], text);
    }
    free(a);
}

static void take_words(struct web *w, struct evhttp_request *req) {
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    size_t n = evbuffer_get_length(in);
    char line[DOOR_LINE_MAX];
    const char *why, *body = n ? (const char *)evbuffer_pullup(in, -1) : "";
    int status = door_line(body, n, line, &why);
    if (status) {
        answer_object(w, req, status, why);
        return;
    }
    struct asker *a = mem_new(struct asker);
    *a = (struct asker){w, evhttp_request_get_connection(req), req};
    evhttp_connection_set_closecb(a->connection, on_asker_gone, a);
    presses_say(w->presses, line, on_said, a);
}

static void take_reader(struct web *w, struct evhttp_request *req) {
    if (readers_add(w->readers, req))
        return;
    answer_object(w, req, HTTP_SERVUNAVAIL, "too many pages are open; close some");
}

static void on_request(struct evhttp_request *req, void *arg) {
    struct web *w = arg;
    struct evkeyvalq *h = evhttp_request_get_input_headers(req);
    struct door_request asked = {.target = evhttp_request_get_uri(req),
                                 .host = evhttp_find_header(h, "Host"),
                                 .origin = evhttp_find_header(h, "Origin"),
                                 .posts = evhttp_request_get_command(req) == EVHTTP_REQ_POST};
    enum door_room room;
    const char *why;
    int status = door_admit(&w->door, &asked, &room, &why);
    if (status)
        answer_object(w, req, status, why);
    else if (room == DOOR_WORDS)
        take_words(w, req);
    else if (room == DOOR_EVENTS)
        take_reader(w, req);
    else
        answer_page(w, req);
}

/* ---- listening ---- */

static void on_relief(void *arg, int64_t now) {
    struct web *w = arg;
    evconnlistener_enable(w->listener);
}

/* The listener's argument is evhttp's; a process serves one page. */
static struct web *served;

/* No descriptor is left: who is idle is let go meanwhile. The listener would be ready again at once. */
static void on_listener_error(struct evconnlistener *l, void *arg) {
    evconnlistener_disable(l);
    loop_timer_at(served->relief, clock_monotonic_ns() + refused_ns);
}

static int serve_http(struct web *w, int fd, struct err *err) {
    w->http = evhttp_new(loop_base(w->loop));
    struct evhttp_bound_socket *bound =
        w->http ? evhttp_accept_socket_with_handle(w->http, fd) : NULL;
    if (!bound) {
        file_close(&fd);
        return err_say(err, -12, "serve the page: out of memory");
    }
    evhttp_set_max_body_size(w->http, BODY_MAX);
    evhttp_set_max_headers_size(w->http, HEADERS_MAX);
    evhttp_set_timeout(w->http, IDLE_S);
    evhttp_set_allowed_methods(w->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
    evhttp_set_gencb(w->http, on_request, w);
    w->listener = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(w->listener, on_listener_error);
    served = w;
    return 0;
}

static void draw_token(char ret[DOOR_TOKEN]) {
    snprintf(ret, DOOR_TOKEN, "%016" PRIx64 "%016" PRIx64, random_u64(), random_u64());
}

struct web *web_new(struct loop *loop, const struct folder *run, const struct tcp_endpoint *at,
                    bool beyond, void (*told)(void *arg), void *arg, struct err *err) {
    int fd = -1;
    struct web *w = mem_new(struct web);
    *w = (struct web){.loop = loop, .run = run, .told = told, .arg = arg, .drawn_ns = -redraw_ns};
    w->door.beyond = beyond;
    str_copy(w->host, sizeof(w->host), at->host);
    draw_token(w->door.token);
    draw_token(w->nonce);
    w->due = loop_timer(loop, on_due, w);
    w->relief = loop_timer(loop, on_relief, w);
    w->farewell = loop_timer(loop, on_farewell, w);
    w->readers = readers_new(on_empty, w);
    w->presses = presses_new(loop, run);
    if (tcp_listen(at->host, at->port, BACKLOG, &fd, &w->door.port, err) < 0 ||
        serve_http(w, fd, err) < 0)
        return web_free(w);
    return w;
}

struct web *web_free(struct web *w) {
    if (!w)
        return NULL;
    presses_free(w->presses);
    readers_free(w->readers);
    if (w->http)
        evhttp_free(w->http);
    served = NULL;
    loop_source_free(w->due);
    loop_source_free(w->relief);
    loop_source_free(w->farewell);
    free(w);
    return NULL;
}

void web_url(const struct web *w, char ret[WEB_URL]) {
    bool v6 = strchr(w->host, ':');
    snprintf(ret, WEB_URL, "http://%s%s%s:%d/%s/", v6 ? "[" : "", w->host, v6 ? "]" : "",
             w->door.port, w->door.token);
}
