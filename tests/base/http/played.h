/* played: a server that says what a test wants it to, byte for byte, on the loop of its client. */
#pragma once

#include "base/buf.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/loop.h"
#include "base/sys/tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PLAYED_CLIENTS_MAX = 64 };

enum played_then { THEN_STAY, THEN_CLOSE, THEN_BREAK };

/* What is said to a whole request, and what becomes of the connection then. say NULL: nothing. */
struct played_line {
    const char *say;
    enum played_then then;
};

struct played_client {
    struct played *server;
    int fd;
    struct loop_source *source;
    struct buf request;
    int requests;
};

struct played {
    struct loop *loop;
    uint16_t port;
    int fd;
    struct loop_source *source;
    struct played_client clients[PLAYED_CLIENTS_MAX];
    int n_clients, requests;
    struct played_line lines[4]; /* for the first requests; the last of them for all others */
    int n_lines;
    char last[4096]; /* the last request */
};

static inline void played_leave(struct played_client *c, enum played_then how) {
    c->source = loop_source_free(c->source);
    if (how == THEN_BREAK)
        tcp_close_as_broken(&c->fd);
    file_close(&c->fd);
}

static inline void played_say(struct played_client *c, const char *text) {
    size_t n = strlen(text);
    assert_int_equal(send(c->fd, text, n, MSG_NOSIGNAL), n);
}

static inline bool played_is_whole(const struct buf *request) {
    const char *text = buf_str(request), *end = strstr(text, "\r\n\r\n");
    const char *length = strstr(text, "Content-Length: ");
    return end &&
           request->len >= (size_t)(end + 4 - text) + (length ? strtoul(length + 16, NULL, 10) : 0);
}

static inline void on_played_request(void *arg, int fd, int what) {
    struct played_client *c = arg;
    struct played *s = c->server;
    char piece[4096];
    (void)what;
    ssize_t n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);
    if (n <= 0) {
        played_leave(c, THEN_CLOSE);
        return;
    }
    buf_put(&c->request, piece, (size_t)n);
    if (!played_is_whole(&c->request))
        return;
    snprintf(s->last, sizeof(s->last), "%s", buf_str(&c->request));
    buf_clear(&c->request);
    int i = s->requests < s->n_lines ? s->requests : s->n_lines - 1;
    s->requests++;
    c->requests++;
    if (s->lines[i].say)
        played_say(c, s->lines[i].say);
    if (s->lines[i].then != THEN_STAY)
        played_leave(c, s->lines[i].then);
}

static inline void on_played_client(void *arg, int fd, int what) {
    struct played *s = arg;
    (void)what;
    assert_true(s->n_clients < PLAYED_CLIENTS_MAX);
    struct played_client *c = &s->clients[s->n_clients++];
    c->server = s;
    c->fd = accept(fd, NULL, NULL);
    assert_true(c->fd >= 0);
    c->source = loop_fd(s->loop, c->fd, LOOP_READ, on_played_request, c);
}

static inline void played_begin(struct played *s, struct loop *l) {
    *s = (struct played){.loop = l, .n_lines = 1};
    assert_int_equal(tcp_listen("127.0.0.1", 0, PLAYED_CLIENTS_MAX, &s->fd, &s->port, NULL), 0);
    s->source = loop_fd(l, s->fd, LOOP_READ, on_played_client, s);
}

static inline void played_end(struct played *s) {
    for (int i = 0; i < s->n_clients; i++) {
        played_leave(&s->clients[i], THEN_CLOSE);
        buf_fini(&s->clients[i].request);
    }
    loop_source_free(s->source);
    file_close(&s->fd);
}

static inline void on_played_turn(void *arg, int64_t now_ns) {
    (void)now_ns;
    loop_stop(arg);
}

/* A turn of the loop or a few, for what a test looks at between them. */
static inline void played_turn(struct played *s) {
    struct loop_source *soon = loop_timer(s->loop, on_played_turn, s->loop);
    loop_timer_at(soon, clock_monotonic_ns() + 1000000);
    assert_int_equal(loop_run(s->loop, NULL), 0);
    loop_source_free(soon);
}

/* A listening socket whose backlog is full: whoever connects waits for ever. */
struct crowd {
    int fd, clients[8];
    uint16_t port;
};

static inline void crowd_begin(struct crowd *k, const char *host, uint16_t port) {
    struct tcp_endpoint to = {.port = port};
    struct tcp_address at;
    assert_int_equal(tcp_listen(host, port, 0, &k->fd, &to.port, NULL), 0);
    snprintf(to.host, sizeof(to.host), "%s", host);
    assert_int_equal(tcp_resolve_number(&to, &at, 1), 1);
    for (int i = 0; i < 8; i++)
        assert_int_equal(tcp_connect(&at, &k->clients[i]), 0);
    k->port = to.port;
}

static inline void crowd_end(struct crowd *k) {
    for (int i = 0; i < 8; i++)
        file_close(&k->clients[i]);
    file_close(&k->fd);
}
