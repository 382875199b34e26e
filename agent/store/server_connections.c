/* Connections of the embedded store: how they come in, with TLS or without, and what is told of
 * those that are none of HTTP. */
#include "agent/store/answer.h"
#include "agent/store/limits/crowd.h"
#include "agent/store/limits/ledger.h"
#include "agent/store/server_state.h"
#include "base/sys/line.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>

enum {
    TLS_HANDSHAKE = 0x16, /* RFC 8446, 5.1 */
};

/* Of this process, that listen. */
static struct list servers = {&servers, &servers};

/* HTTP begins with a letter; a TCPStore client (torchrun's c10d backend) with the number of a query
 * and a binary length; TLS with the type of its first record. It gets evhttp's 400 and its user a
 * line that says what to do. */
static void on_first_bytes(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg) {
    struct server *s = arg;
    unsigned char first = 'P';
    if (!info->n_added)
        return;
    evbuffer_remove_cb(in, on_first_bytes, s); /* what follows may begin with anything */
    evbuffer_copyout(in, &first, 1);
    if (first >= ' ' || s->stranger_told)
        return;
    s->stranger_told = true;
    if (first == TLS_HANDSHAKE)
        line_say(LINE_WARNING, "store",
                 "a client that speaks TLS knocked at port %u of the store, which speaks none "
                 "without a certificate: --rdzv-conf store_cert=FILE,store_key=FILE of the agent "
                 "that serves it, or rankrun store --cert FILE --key FILE",
                 s->port);
    else
        line_say(
            LINE_WARNING, "store",
            "a client that speaks no HTTP knocked at port %u of the store, most likely torchrun "
            "with --rdzv-backend=c10d: it cannot join rankrun agents",
            s->port);
}

static void on_received(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg) {
    struct server *s = arg;
    s->metrics.received += info->n_added;
}

/* What leaves it was taken by the kernel. */
static void on_sent(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg) {
    struct server *s = arg;
    s->metrics.sent += info->n_deleted;
}

static void on_handshake_done(void *arg, struct bufferevent *b) {
    struct server *s = arg;
    ledger_whole(s->ledger, b);
}

void server_gone(void *arg, struct bufferevent *b) {
    struct server *s = arg;
    ledger_close(s->ledger, b);
}

/* Each reason once: clients come again, and anybody can come. */
static void on_handshake_failed(void *arg, struct bufferevent *b, const char *why) {
    struct server *s = arg;
    char own[TCP_ENDS_MAX], peer[TCP_ENDS_MAX] = "a client";
    int n = 0;
    s->metrics.handshakes_failed++;
    while (n < SERVER_REASONS_MAX && s->told[n] && s->told[n] != why)
        n++;
    if (n == SERVER_REASONS_MAX || s->told[n])
        return;
    s->told[n] = why;
    tcp_ends(bufferevent_getfd(b), own, peer);
    line_say(LINE_WARNING, "store", "store: %s is not let in at port %u, which speaks TLS: %s",
             peer, s->port, why);
}

/* A handshake has as long to end as a request has to come; how many there are crowd bounds. In
 * place of a connection that is not there evhttp would make a plain one. */
struct bufferevent *server_accept(struct event_base *base, void *arg) {
    struct server *s = arg;
    struct bufferevent *b = s->tls ? tls_accept(s->tls, base, &s->tls_watch)
                                   : bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (!b)
        abort();
    s->metrics.accepted++;
    crowd_enter(s->crowd, b);
    ledger_open(s->ledger, b);
    if (s->tls)
        ledger_begin(s->ledger, b, 1);
    evbuffer_add_cb(bufferevent_get_input(b), on_received, s);
    evbuffer_add_cb(bufferevent_get_input(b), on_first_bytes, s);
    evbuffer_add_cb(bufferevent_get_output(b), on_sent, s);
    return b;
}

/* The listener's argument is evhttp's. */
static struct server *find_server(const struct evconnlistener *listener) {
    struct list *it = servers.next;
    while (list_entry(it, struct server, node)->listener != listener)
        it = it->next;
    return list_entry(it, struct server, node);
}

/* No more files: whoever waits stays in the backlog. Without a pause the listener would be ready
 * again at once, for ever, and those who are in would wait too. */
static void on_accept_failed(struct evconnlistener *listener, void *arg) {
    struct server *s = find_server(listener);
    if (!s->crowd_told)
        line_say(LINE_WARNING, "store",
                 "store: no more connections to port %u can be taken for now: %s (ulimit -n)",
                 s->port, strerror(errno));
    s->crowd_told = true;
    crowd_wait(s->crowd);
}

void server_listen(struct server *s, struct evconnlistener *listener) {
    s->listener = listener;
    list_append(&servers, &s->node);
    evconnlistener_set_error_cb(listener, on_accept_failed);
    crowd_listen(s->crowd, listener);
}

void server_unlisten(struct server *s) {
    if (s->listener)
        list_remove(&s->node);
}

/* ---- TLS ---- */

/* Who speaks no TLS is told so in plain HTTP, as it reads nothing else. */
static void put_tls_wanted(struct buf *out) {
    struct answer a = {0};
    answer_refuse(&a, ANSWER_CONDITION,
                  "this store speaks TLS: https, --rdzv-conf protocol=https,cacert=FILE");
    buf_printf(out,
               "HTTP/1.1 426 Upgrade Required\r\nUpgrade: TLS/1.2\r\nConnection: close\r\n"
               "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
               a.body.len, buf_str(&a.body));
    buf_fini(&a.body);
}

void server_encrypt(struct server *s, struct tls *t, bool clients_certified) {
    s->tls = t;
    s->tls_admits = clients_certified;
    put_tls_wanted(&s->tls_wanted);
    s->tls_watch = (struct tls_watch){.gone = server_gone,
                                      .done = on_handshake_done,
                                      .failed = on_handshake_failed,
                                      .arg = s,
                                      .plain = buf_str(&s->tls_wanted)};
}
