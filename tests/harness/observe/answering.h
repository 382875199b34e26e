/* answering: a store that answers one question after the other with what a test has written down. */
#pragma once

#include "base/buf.h"
#include "base/sys/tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWERS_MAX = 4 };

struct answering {
    const char *answers[ANSWERS_MAX]; /* NULL: no more are asked */
    int code;                         /* HTTP's */
    int fd;
    uint16_t port;
    struct buf asked[ANSWERS_MAX];
    int n;
    pthread_t thread;
};

static inline bool answering_has_all(const char *text, size_t len) {
    const char *end = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
    return end && len >= (size_t)(end + 4 - text) + (length ? strtoul(length + 16, NULL, 10) : 0);
}

static inline void answering_one(struct answering *s, int i) {
    BUF_FINI struct buf answer = {0};
    char piece[1024];
    ssize_t n;
    int fd = accept(s->fd, NULL, NULL);
    if (fd < 0)
        return;
    while ((n = read(fd, piece, sizeof(piece))) > 0) {
        buf_put(&s->asked[i], piece, (size_t)n);
        if (answering_has_all(buf_str(&s->asked[i]), s->asked[i].len))
            break;
    }
    buf_printf(&answer, "HTTP/1.1 %d So\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
               s->code, strlen(s->answers[i]), s->answers[i]);
    (void)!send(fd, answer.data, answer.len, MSG_NOSIGNAL);
    close(fd);
    s->n++;
}

/* A connection that is shut down without one ends it. */
static inline void *answering_serve(void *arg) {
    struct answering *s = arg;
    for (int i = 0; i < ANSWERS_MAX && s->answers[i]; i++)
        answering_one(s, i);
    return NULL;
}

/* All of the answers must be asked for. code: 0 is 200. */
static inline void answering_begin(struct answering *s) {
    s->code = s->code ? s->code : 200;
    assert_int_equal(tcp_listen("127.0.0.1", 0, ANSWERS_MAX, &s->fd, &s->port, NULL), 0);
    assert_int_equal(fcntl(s->fd, F_SETFL, 0), 0); /* its thread may wait */
    assert_int_equal(pthread_create(&s->thread, NULL, answering_serve, s), 0);
}

/* Ends whoever still waits for a question; then asked and n are there, until answering_fini. */
static inline void answering_end(struct answering *s) {
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

static inline void answering_fini(struct answering *s) {
    for (int i = 0; i < ANSWERS_MAX; i++)
        buf_fini(&s->asked[i]);
}
