/* Requests over connections: one at a time on each. One that its answer leaves intact is kept, and
 * carries the next request to that host and port.
 *
 * Plain connections are read and written here: this is what each agent of a job has, and libcurl
 * with its thirty libraries costs it more than all the rest of its start. TLS is tls_client's.
 *
 * A request that is given up takes its connection along, and with it a handshake that was not done:
 * where that takes longer than a request may, on a starved machine, each would begin it anew and
 * none would come to its end. So the first one that is given up in a handshake leaves knocks
 * behind: requests of nothing, with a deadline for handshakes, whose connections are then there for
 * others. Those that come meanwhile wait for them, within their own time. */
#include "base/http/response.h"
#include "base/http/state.h"
#include "base/http/tls_client.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/dial.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { KEPT_MAX = 8, PIECE_SIZE = 16 << 10, PIECES_PER_TURN = 16 };
enum { SILENCE_S = 20 };   /* for tcp_bound_silence */
enum { TLS_ALERT = 0x15 }; /* RFC 8446, 5.1 */
/* KNOCKS: so many calls of an agent are under way beside each other: two watches, a beat, a write.
 * With fewer connections one would fail, for which the watches are begun anew, on new ones. */
enum { KNOCKS = 4 };

/* A host and port. */
struct peer {
    struct list node;
    struct http *http;
    struct tcp_endpoint at;
    char *origin;
    struct dialer *dialer;
    struct list kept; /* connections that wait for a request */
    int n_kept;
    int n_knocks;
    struct list waiting; /* calls, for the connections of the knocks */
};

struct connection {
    struct list node;
    struct peer *peer;
    int fd;
    struct tls_client *tls; /* has the fd; NULL: plain */
    bool shaking;           /* its handshake goes on */
    struct loop_source *source;
    bool kept, used;        /* used: it has carried a request before */
    struct http_call *call; /* NULL: it is kept */
    struct response response;
    size_t sent;      /* of the call's request */
    int write_failed; /* -errno */
};

/* ---- reading and writing ---- */

static ssize_t connection_recv(struct connection *n, char *p, size_t size) {
    ssize_t k;
    if (n->tls)
        return tls_client_recv(n->tls, p, size);
    do
        k = recv(n->fd, p, size, 0);
    while (k < 0 && errno == EINTR);
    return k < 0 ? -errno : k;
}

static ssize_t connection_send(struct connection *n, const char *p, size_t size) {
    ssize_t k;
    if (n->tls)
        return tls_client_send(n->tls, p, size);
    do
        k = send(n->fd, p, size, MSG_NOSIGNAL);
    while (k < 0 && errno == EINTR);
    return k < 0 ? -errno : k;
}

/* A server by TLS may say things that are none of HTTP's. */
static bool is_quiet(struct connection *n) {
    char byte;
    return n->tls && tls_client_recv(n->tls, &byte, 1) == -EAGAIN;
}

/* ---- connections ---- */

static struct connection *connection_free(struct connection *n) {
    if (!n)
        return NULL;
    n->peer->n_kept -= n->kept;
    if (n->call)
        n->call->carried = NULL;
    list_remove(&n->node);
    loop_source_free(n->source);
    if (n->tls)
        tls_client_free(n->tls);
    else
        file_close(&n->fd);
    response_fini(&n->response);
    free(n);
    return NULL;
}

static void connection_keep(struct connection *n) {
    n->call = NULL;
    n->kept = true;
    list_remove(&n->node);
    list_append(&n->peer->kept, &n->node);
    n->peer->n_kept++;
}

/* The one that was used last; NULL: there is none. */
static struct connection *take_kept(struct peer *p) {
    while (!list_empty(&p->kept)) {
        struct connection *n = list_entry(p->kept.prev, struct connection, node);
        if (n->tls && !is_quiet(n)) {
            connection_free(n);
            continue;
        }
        list_remove(&n->node);
        n->kept = false;
        n->used = true;
        p->n_kept--;
        return n;
    }
    return NULL;
}

/* There is a connection, or nothing more to wait for. */
static void serve_waiting(struct peer *p) {
    while (!list_empty(&p->waiting) && (p->n_kept || !p->n_knocks)) {
        struct http_call *c = list_entry(p->waiting.next, struct http_call, waiting);
        list_remove(&c->waiting);
        exchange_begin(c);
    }
}

static void call_fail(struct http_call *c, const char *why) {
    str_copy(c->error, sizeof(c->error), why);
    http_call_end(c, 0);
}

/* What may be wrong with the way we came by. */
static const char *advice(const struct http *h) {
    const char *said = h->way.advice[h->way.https ? HTTP_MAY_WANT_CERTIFICATE : HTTP_MAY_WANT_TLS];
    return said ? said : "";
}

/* The connection is gone. */
static void call_lost(struct http_call *c, const char *why, bool advised) {
    const struct tcp_endpoint *at = &c->peer->at;
    snprintf(c->error, sizeof(c->error), "%s port %u: %.400s%s", at->host, at->port, why,
             advised ? advice(c->http) : "");
    http_call_end(c, 0);
}

/* The answer is whole: the connection may carry another request if both sides are done with it. */
static void connection_done(struct connection *n, bool clean) {
    struct http_call *c = n->call;
    long status = n->response.status;
    if (!clean || !n->response.keeps || n->sent < c->request.len || n->peer->n_kept >= KEPT_MAX) {
        connection_free(n);
    } else {
        response_fini(&n->response);
        n->response = (struct response){0};
        c->carried = NULL;
        connection_keep(n);
    }
    http_call_end(c, status);
    serve_waiting(c->peer);
}

/* Whether the peer cannot have read any of the request. It had closed before: what came behind its
 * FIN would have been acknowledged with it. An error, on either side, proves nothing, nor does what
 * the kernel counts of records of TLS. */
static bool is_unread(const struct connection *n, int code) {
    if (!n->used || n->response.begun)
        return false;
    return !n->sent || (!n->tls && !code && !n->write_failed && tcp_none_arrived(n->fd, n->sent));
}

/* It has ended before its answer did; code: -errno, or 0 when the other side closed. Where that had
 * happened before the request came, the request is sent on another one. */
static void connection_lost(struct connection *n, int code) {
    struct http_call *c = n->call;
    bool again = is_unread(n, code), begun = n->response.begun;
    bool advised = !begun && !n->used && (!code || n->tls);
    char why[400];
    code = code ? code : n->write_failed;
    if (code)
        snprintf(why, sizeof(why), "the connection broke %s its answer: %.300s",
                 begun ? "in the middle of" : "before",
                 n->tls ? tls_client_why(n->tls) : strerror(-code));
    else
        str_copy(why, sizeof(why), n->response.why);
    connection_free(n);
    if (again)
        exchange_begin(c);
    else
        call_lost(c, why, advised);
}

/* What cannot be sent is no end yet: the other side may have answered before it closed. Its answer,
 * or the end, is what is read next. */
static void connection_write(struct connection *n) {
    const struct buf *request = &n->call->request;
    while (n->sent < request->len && !n->write_failed) {
        ssize_t k = connection_send(n, request->data + n->sent, request->len - n->sent);
        if (k == -EAGAIN)
            break;
        n->sent += k >= 0 ? (size_t)k : 0;
        n->write_failed = k >= 0 ? 0 : (int)k;
    }
    if (n->write_failed)
        shutdown(n->fd, SHUT_RD);
    bool more = n->sent < request->len && !n->write_failed;
    loop_fd_set(n->source, more ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

/* False: nothing more is to be read, n may be gone. */
static bool connection_take(struct connection *n, const char *p, size_t len) {
    struct http_call *c = n->call;
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
    bool alert = !c->http->way.https && !n->response.status && (unsigned char)p[0] == TLS_ALERT;
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

/* A part of what has come: others are waiting for their turn. Of TLS all of it, as what libcurl has
 * taken from the socket already does not make it readable again. */
static void connection_read(struct connection *n) {
    char piece[PIECE_SIZE];
    for (int i = 0; n->tls || i < PIECES_PER_TURN; i++) {
        ssize_t k = connection_recv(n, piece, sizeof(piece));
        if (k == -EAGAIN)
            return;
        if (k < 0)
            connection_lost(n, (int)k);
        else if (k == 0)
            connection_ended(n);
        if (k <= 0 || !connection_take(n, piece, (size_t)k))
            return;
    }
}

static void on_connection(void *arg, int fd, int what) {
    struct connection *n = arg;
    struct http *h = n->peer->http;
    if (!n->call) { /* nothing is expected but its end */
        if (!is_quiet(n))
            connection_free(n);
        return;
    }
    if (what & LOOP_WRITE)
        connection_write(n);
    if (what & LOOP_READ)
        connection_read(n);
    http_tell(h);
}

/* ---- calls ---- */

static const struct response_reader READER = {.header = http_call_take_header,
                                              .body = http_call_take};

static void call_carry(struct http_call *c, struct connection *n) {
    n->call = c;
    n->sent = 0;
    c->carried = n;
    response_begin(&n->response, &READER, c);
    if (c->waits) {
        loop_timer_off(c->deadline);
        c->timed = false;
    }
    connection_write(n);
}

/* Requests may go over it. */
static void connection_open(struct connection *n) {
    n->shaking = false;
    n->source = loop_fd(n->peer->http->loop, n->fd, LOOP_READ, on_connection, n);
    call_carry(n->call, n);
}

static void on_handshake(void *arg, const char *why) {
    struct connection *n = arg;
    struct http *h = n->peer->http;
    if (why) {
        call_fail(n->call, why);
        connection_free(n);
    } else {
        connection_open(n);
    }
    http_tell(h);
}

static void on_connected(void *arg, int fd, const char *why) {
    struct http_call *c = arg;
    struct http *h = c->http;
    c->dial = NULL;
    if (fd < 0) {
        call_fail(c, why);
    } else {
        struct connection *n = mem_new(struct connection);
        tcp_bound_silence(fd, SILENCE_S);
        *n = (struct connection){.peer = c->peer, .fd = fd, .call = c, .shaking = h->by_libcurl};
        list_init(&n->node);
        c->carried = n;
        if (n->shaking)
            n->tls = tls_client_new(h->loop, fd, c->peer->origin, &h->way, on_handshake, n);
        else
            connection_open(n);
    }
    http_tell(h);
}

void exchange_begin(struct http_call *c) {
    struct peer *p = c->peer;
    struct connection *n = take_kept(p);
    if (!c->timed)
        loop_timer_at(c->deadline, clock_monotonic_ns() + c->timeout_ms * 1000000);
    c->timed = true;
    if (n)
        call_carry(c, n);
    else if (p->n_knocks)
        list_append(&p->waiting, &c->waiting);
    else
        c->dial = dial_begin(p->dialer, on_connected, c);
}

void exchange_drop(struct http_call *c) {
    c->dial = dial_cancel(c->dial);
    connection_free(c->carried);
    list_remove(&c->waiting);
}

/* ---- knocks ---- */

static void on_knocked(void *arg, long status, const struct buf *body, const char *error) {
    struct peer *p = arg;
    p->n_knocks--;
    serve_waiting(p);
}

/* What is asked is known to etcd, and refused by our own store: either is an answer. */
static void knock_at(struct peer *p) {
    BUF_FINI struct buf url = {0};
    buf_printf(&url, "%s/version", p->origin);
    struct http_request r = {
        .method = "GET", .url = buf_str(&url), .timeout_ms = TLS_CLIENT_HANDSHAKE_MS};
    for (int i = 0; i < KNOCKS; i++)
        http_send(p->http, &r, on_knocked, p);
    p->n_knocks = KNOCKS;
}

/* ---- deadlines ---- */

void exchange_on_deadline(void *arg, int64_t now_ns) {
    struct http_call *c = arg;
    struct http *h = c->http;
    struct connection *n = c->carried;
    char why[TCP_HOST_MAX + 80];
    if (c->dial)
        snprintf(why, sizeof(why), "%s took longer than %d ms", dial_doing(c->dial),
                 (int)c->timeout_ms);
    else if (!n || n->shaking)
        snprintf(why, sizeof(why), "the TLS handshake with %.*s is still going on", TCP_HOST_MAX,
                 c->peer->origin);
    else
        snprintf(why, sizeof(why), "no%s answer from %s port %u within %d ms",
                 n->response.begun ? " whole" : "", c->peer->at.host, c->peer->at.port,
                 (int)c->timeout_ms);
    bool knock = n && n->shaking && !c->peer->n_knocks;
    exchange_drop(c);
    call_fail(c, why);
    if (knock)
        knock_at(c->peer);
    http_tell(h);
}

/* ---- peers ---- */

struct peer *peer_of(struct http *h, const char *origin, const struct tcp_endpoint *at) {
    list_each(it, &h->peers) {
        struct peer *p = list_entry(it, struct peer, node);
        if (str_eq(p->origin, origin) && str_eq(p->at.host, at->host))
            return p;
    }
    struct peer *p = mem_new(struct peer);
    *p = (struct peer){.http = h, .at = *at, .origin = mem_strdup(origin)};
    p->dialer = dialer_new(h->loop, at);
    list_init(&p->kept);
    list_init(&p->waiting);
    list_append(&h->peers, &p->node);
    return p;
}

void peers_free(struct http *h) {
    list_each_safe(it, next, &h->peers) {
        struct peer *p = list_entry(it, struct peer, node);
        list_each_safe(k, after, &p->kept) connection_free(list_entry(k, struct connection, node));
        dialer_free(p->dialer);
        free(p->origin);
        free(p);
    }
}
