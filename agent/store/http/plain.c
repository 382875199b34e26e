/* Requests over connections without TLS, by ourselves: this is what each agent of a job has, and
 * libcurl with its thirty libraries costs it more than all the rest of its start.
 *
 * One request at a time on a connection. One that its answer leaves intact is kept, and carries the
 * next request to that host and port. */
#include "agent/base/str.h"
#include "agent/store/http/response.h"
#include "agent/store/http/transport.h"
#include "agent/sys/clock.h"
#include "agent/sys/dial.h"
#include "agent/sys/file.h"
#include "agent/sys/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { HTTP_PORT = 80, KEPT_MAX = 8, PIECE_SIZE = 16 << 10, PIECES_PER_TURN = 16 };
enum { TLS_ALERT = 0x15 }; /* RFC 8446, 5.1 */

struct plain_http {
    struct http http;
    struct list peers;
    struct loop_source *soon; /* something has ended outside the loop */
};

/* A host and port. */
struct peer {
    struct list node;
    struct tcp_endpoint at;
    struct dialer *dialer;
    struct list kept; /* connections that wait for a request */
    int n_kept;
};

struct connection {
    struct list node;
    struct peer *peer;
    int fd;
    struct loop_source *source;
    bool used;               /* it has carried a request before */
    struct plain_call *call; /* NULL: it is kept */
    struct response response;
    size_t sent;      /* of the call's request */
    int write_failed; /* -errno */
};

struct plain_call {
    struct http_call call;
    struct peer *peer;
    struct buf request;
    struct dial *dial;          /* it is being connected, */
    struct connection *carried; /* or carried, or has ended */
    struct loop_source *deadline;
    bool waits;
    int64_t timeout_ms;
};

static struct plain_http *http_of(struct http *h) {
    return (struct plain_http *)(void *)h; /* the first member */
}

static struct plain_call *call_of(struct http_call *c) {
    return (struct plain_call *)(void *)c; /* the first member */
}

/* ---- connections ---- */

static struct connection *connection_free(struct connection *n) {
    if (!n)
        return NULL;
    n->peer->n_kept -= !n->call;
    if (n->call)
        n->call->carried = NULL;
    list_remove(&n->node);
    loop_source_free(n->source);
    file_close(&n->fd);
    response_fini(&n->response);
    free(n);
    return NULL;
}

static void call_end(struct plain_call *c, long status) {
    loop_timer_off(c->deadline);
    http_call_end(&c->call, status);
}

static void call_fail(struct plain_call *c, const char *why) {
    str_copy(c->call.error, sizeof(c->call.error), why);
    call_end(c, 0);
}

/* The connection is gone. */
static void call_lost(struct plain_call *c, const char *why, bool wants_tls) {
    const struct tcp_endpoint *at = &c->peer->at;
    snprintf(c->call.error, sizeof(c->call.error), "%s port %u: %.200s%s", at->host, at->port, why,
             wants_tls ? HTTP_WANTS_TLS : "");
    call_end(c, 0);
}

/* The answer is whole: the connection may carry another request if both sides are done with it. */
static void connection_done(struct connection *n, bool clean) {
    struct plain_call *c = n->call;
    long status = n->response.status;
    if (!clean || !n->response.keeps || n->sent < c->request.len || n->peer->n_kept >= KEPT_MAX) {
        connection_free(n);
    } else {
        response_fini(&n->response);
        n->response = (struct response){0};
        c->carried = NULL;
        n->call = NULL;
        list_append(&n->peer->kept, &n->node);
        n->peer->n_kept++;
    }
    call_end(c, status);
}

static void call_begin(struct plain_call *c);

/* Whether the peer cannot have read any of the request. It had closed before: what came behind its
 * FIN would have been acknowledged with it. An error, on either side, proves nothing. */
static bool is_unread(const struct connection *n, int code) {
    if (!n->used || n->response.begun)
        return false;
    return !n->sent || (!code && !n->write_failed && tcp_none_arrived(n->fd, n->sent));
}

/* It has ended before its answer did; code: -errno, or 0 when the other side closed. Where that had
 * happened before the request came, the request is sent on another one. */
static void connection_lost(struct connection *n, int code) {
    struct plain_call *c = n->call;
    bool again = is_unread(n, code), begun = n->response.begun;
    bool wants_tls = !code && !begun && !n->used && c->call.http->access;
    char why[sizeof(n->response.why)];
    code = code ? code : n->write_failed;
    if (code)
        snprintf(why, sizeof(why), "the connection broke %s its answer: %s",
                 begun ? "in the middle of" : "before", strerror(-code));
    else
        str_copy(why, sizeof(why), n->response.why);
    connection_free(n);
    if (again)
        call_begin(c);
    else
        call_lost(c, why, wants_tls);
}

/* What cannot be sent is no end yet: the other side may have answered before it closed. Its answer,
 * or the end, is what is read next. */
static void connection_write(struct connection *n) {
    const struct buf *request = &n->call->request;
    while (n->sent < request->len && !n->write_failed) {
        ssize_t k = send(n->fd, request->data + n->sent, request->len - n->sent, MSG_NOSIGNAL);
        if (k >= 0)
            n->sent += (size_t)k;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            n->write_failed = -errno;
    }
    if (n->write_failed)
        shutdown(n->fd, SHUT_RD);
    bool more = n->sent < request->len && !n->write_failed;
    loop_fd_set(n->source, more ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

/* False: nothing more is to be read, n may be gone. */
static bool connection_take(struct connection *n, const char *p, size_t len) {
    struct plain_call *c = n->call;
    size_t used;
    switch (response_take(&n->response, p, len, &used)) {
    case RESPONSE_MORE:
        return true;
    case RESPONSE_WHOLE:
        connection_done(n, used == len);
        return false;
    case RESPONSE_BROKEN:
        break;
    }
    bool alert = !n->response.status && (unsigned char)p[0] == TLS_ALERT;
    char why[sizeof(n->response.why)];
    str_copy(why, sizeof(why), n->response.why);
    connection_free(n);
    call_lost(c, why, alert);
    return false;
}

static void connection_ended(struct connection *n) {
    if (response_end(&n->response) == RESPONSE_WHOLE)
        connection_done(n, false);
    else
        connection_lost(n, 0);
}

/* A part of what has come: others are waiting for their turn. */
static void connection_read(struct connection *n) {
    char piece[PIECE_SIZE];
    for (int i = 0; i < PIECES_PER_TURN; i++) {
        ssize_t k = recv(n->fd, piece, sizeof(piece), 0);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EAGAIN)
            return;
        if (k < 0)
            connection_lost(n, -errno);
        else if (k == 0)
            connection_ended(n);
        if (k <= 0 || !connection_take(n, piece, (size_t)k))
            return;
    }
}

static void on_connection(void *arg, int fd, int what) {
    struct connection *n = arg;
    struct http *h;
    (void)fd;
    if (!n->call) { /* nothing is expected but its end */
        connection_free(n);
        return;
    }
    h = n->call->call.http;
    if (what & LOOP_WRITE)
        connection_write(n);
    if (what & LOOP_READ)
        connection_read(n);
    http_tell(h);
}

/* ---- calls ---- */

static void on_header(void *arg, const char *line, size_t n) {
    http_call_take_header(arg, line, n);
}

static bool on_body(void *arg, const char *p, size_t n) {
    return http_call_take(arg, p, n);
}

static const struct response_reader READER = {.header = on_header, .body = on_body};

/* The connection is nobody's so far. */
static void call_carry(struct plain_call *c, struct connection *n) {
    n->call = c;
    n->sent = 0;
    c->carried = n;
    response_begin(&n->response, &READER, &c->call);
    if (c->waits)
        loop_timer_off(c->deadline);
    connection_write(n);
}

static void on_connected(void *arg, int fd, const char *why) {
    struct plain_call *c = arg;
    struct http *h = c->call.http;
    c->dial = NULL;
    if (fd < 0) {
        call_fail(c, why);
    } else {
        struct connection *n = calloc(1, sizeof(*n));
        if (!n)
            abort();
        tcp_bound_silence(fd, HTTP_SILENCE_S);
        *n = (struct connection){.peer = c->peer, .fd = fd};
        list_init(&n->node);
        n->source = loop_fd(h->loop, fd, 0, on_connection, n);
        call_carry(c, n);
    }
    http_tell(h);
}

static void set_deadline(struct plain_call *c) {
    loop_timer_at(c->deadline, clock_monotonic_ns() + c->timeout_ms * 1000000);
}

/* Takes the kept connection that was used last. */
static void call_begin(struct plain_call *c) {
    struct peer *p = c->peer;
    if (list_empty(&p->kept)) {
        if (c->waits)
            set_deadline(c);
        c->dial = dial_begin(p->dialer, on_connected, c);
        return;
    }
    struct connection *n = list_entry(p->kept.prev, struct connection, node);
    list_remove(&n->node);
    p->n_kept--;
    n->used = true;
    call_carry(c, n);
}

static void on_deadline(void *arg, int64_t now_ns) {
    struct plain_call *c = arg;
    struct http *h = c->call.http;
    char why[TCP_HOST_MAX + 80];
    (void)now_ns;
    if (c->dial)
        snprintf(why, sizeof(why), "%s took longer than %d ms", dial_doing(c->dial),
                 (int)c->timeout_ms);
    else
        snprintf(why, sizeof(why), "no%s answer from %s port %u within %d ms",
                 c->carried->response.begun ? " whole" : "", c->peer->at.host, c->peer->at.port,
                 (int)c->timeout_ms);
    c->dial = dial_cancel(c->dial);
    connection_free(c->carried);
    call_fail(c, why);
    http_tell(h);
}

/* ---- requests ---- */

static struct peer *peer_of(struct plain_http *h, const struct tcp_endpoint *at) {
    list_each(it, &h->peers) {
        struct peer *p = list_entry(it, struct peer, node);
        if (p->at.port == at->port && str_eq(p->at.host, at->host))
            return p;
    }
    struct peer *p = calloc(1, sizeof(*p));
    if (!p)
        abort();
    *p = (struct peer){.at = *at, .dialer = dialer_new(h->http.loop, at)};
    list_init(&p->kept);
    list_append(&h->peers, &p->node);
    return p;
}

static void peer_free(struct peer *p) {
    list_each_safe(it, next, &p->kept) connection_free(list_entry(it, struct connection, node));
    dialer_free(p->dialer);
    list_remove(&p->node);
    free(p);
}

/* "http://HOST[:PORT]/PATH": where to, and as what it stands in the request. */
static int read_url(const char *url, struct tcp_endpoint *ret_at, struct buf *ret_authority,
                    const char **ret_path, struct err *err) {
    static const char scheme[] = "http://";
    if (!str_starts(url, scheme))
        return err_say(err, -EINVAL, "'%s' is no address of plain HTTP", url);
    const char *at = url + sizeof(scheme) - 1, *path = at + strcspn(at, "/?");
    buf_put(ret_authority, at, (size_t)(path - at));
    *ret_path = *path ? path : "/";
    return tcp_endpoint_parse(buf_str(ret_authority), HTTP_PORT, ret_at, err);
}

static void put_request(struct buf *out, const struct http_letter *letter, const char *authority,
                        const char *path) {
    buf_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: */*\r\n", letter->method, path,
               authority);
    if (letter->token[0])
        buf_printf(out, "Authorization: %s\r\n", letter->token);
    if (letter->body)
        buf_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n", letter->type,
                   letter->body->len);
    buf_puts(out, "\r\n");
    if (letter->body)
        buf_put(out, letter->body->data, letter->body->len);
}

/* Whoever asks is told from the loop, also of what fails at once. */
static void plain_send(struct http_call *call, const struct http_letter *letter) {
    struct plain_http *h = http_of(call->http);
    struct plain_call *c = call_of(call);
    struct tcp_endpoint at;
    struct buf authority = {0};
    const char *path = "";
    struct err err;
    c->waits = letter->waits;
    c->timeout_ms = letter->timeout_ms;
    c->deadline = loop_timer(h->http.loop, on_deadline, c);
    if (read_url(letter->url, &at, &authority, &path, &err) < 0) {
        call_fail(c, err.msg);
        loop_timer_at(h->soon, 0);
    } else {
        c->peer = peer_of(h, &at);
        put_request(&c->request, letter, buf_str(&authority), path);
        if (!c->waits)
            set_deadline(c);
        call_begin(c);
    }
    buf_fini(&authority);
}

/* ---- the transport ---- */

static void on_soon(void *arg, int64_t now_ns) {
    (void)now_ns;
    http_tell(arg);
}

static struct http *plain_open(struct loop *l, struct err *err) {
    struct plain_http *h = calloc(1, sizeof(*h));
    (void)err;
    if (!h)
        abort();
    list_init(&h->peers);
    h->soon = loop_timer(l, on_soon, h);
    return &h->http;
}

static void plain_close(struct http *http) {
    struct plain_http *h = http_of(http);
    list_each_safe(it, next, &h->peers) peer_free(list_entry(it, struct peer, node));
    loop_source_free(h->soon);
    free(h);
}

static struct http_call *plain_new_call(struct http *h) {
    struct plain_call *c = calloc(1, sizeof(*c));
    (void)h;
    if (!c)
        abort();
    return &c->call;
}

static void plain_drop(struct http_call *call) {
    struct plain_call *c = call_of(call);
    dial_cancel(c->dial);
    connection_free(c->carried);
    loop_source_free(c->deadline);
    buf_fini(&c->request);
    free(c);
}

const struct http_transport http_plain = {
    .name = "plain",
    .open = plain_open,
    .close = plain_close,
    .new_call = plain_new_call,
    .send = plain_send,
    .drop = plain_drop,
};
