/* raw: what is said to an embedded store as bytes, and what comes back, for tests of what a client of ours would never send. */
#pragma once

#include "agent/store/server.h"
#include "base/buf.h"
#include "base/sys/clock.h"
#include "base/sys/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

struct raw {
    struct loop *loop;
    struct loop_source *source;
    int fd;
    bool ended, reads;
    const char *until; /* loop_stop when this has come; NULL: at the end */
    struct buf in;
};

static inline void raw_gave_up(void *arg, int64_t now_ns) {
    (void)arg;
    (void)now_ns;
    fail_msg("the store says nothing");
}

static inline void raw_take(void *arg, int fd, int what) {
    struct raw *r = arg;
    char piece[65536];
    (void)what;
    ssize_t n = recv(fd, piece, sizeof(piece), 0);
    if (n > 0)
        buf_put(&r->in, piece, (size_t)n);
    r->ended = n <= 0;
    if (r->ended)
        loop_fd_set(r->source, 0);
    if (r->ended || (r->until && strstr(buf_str(&r->in), r->until)))
        loop_stop(r->loop);
}

static inline void raw_open(struct raw *r, struct loop *l, unsigned port) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    *r = (struct raw){.loop = l, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(connect(r->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    r->source = loop_fd(l, r->fd, LOOP_READ, raw_take, r);
}

static inline void raw_send(struct raw *r, const void *text, size_t n) {
    assert_int_equal(send(r->fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* Until `until` has come, or the store hangs up. */
static inline void raw_await(struct raw *r, const char *until) {
    struct loop_source *patience = loop_timer(r->loop, raw_gave_up, r);
    loop_timer_at(patience, clock_monotonic_ns() + 20000000000);
    r->until = until;
    while (!r->ended && !(until && strstr(buf_str(&r->in), until)))
        assert_int_equal(loop_run(r->loop, NULL), 0);
    loop_source_free(patience);
}

static inline void raw_close(struct raw *r) {
    loop_source_free(r->source);
    close(r->fd);
    buf_fini(&r->in);
}

/* A whole request; headers: more of them, each with its end. Its connection ends with the answer. */
static inline void raw_put_request(struct buf *out, const char *method, const char *path,
                                   const char *headers, const char *body) {
    buf_printf(out, "%s %s HTTP/1.1\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
               method, path, headers, strlen(body), body);
}

/* Opens r, asks, and waits. until NULL: for the end. */
static inline void raw_ask(struct raw *r, struct loop *l, unsigned port, const struct buf *request,
                           const char *until) {
    raw_open(r, l, port);
    raw_send(r, request->data, request->len);
    raw_await(r, until);
}
