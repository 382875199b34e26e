#include "faults/mechanism/answers.h"

#include <string.h>

static bool begins(const char *text, size_t n, const char *with) {
    size_t len = strlen(with);
    return n >= len && memcmp(text, with, len) == 0;
}

static bool holds(const char *text, size_t n, const char *what) {
    return memmem(text, n, what, strlen(what));
}

static int find(const struct answers_due *s, int client, uint16_t tcp_port) {
    for (int i = 0; i < s->n; i++)
        if (s->open[i].client == client && s->open[i].tcp_port == tcp_port)
            return i;
    return -1;
}

static void forget(struct answers_due *s, int i) {
    s->n--;
    memmove(&s->open[i], &s->open[i + 1], (size_t)(s->n - i) * sizeof(s->open[0]));
}

/* The newest request of a connection is the one that is answered next. */
static void asked(struct answers_due *s, int client, uint16_t tcp_port, bool meant) {
    int i = find(s, client, tcp_port);
    if (i >= 0)
        forget(s, i);
    if (!meant)
        return;
    if (s->n == ANSWERS_OPEN_MAX)
        forget(s, 0);
    s->open[s->n].client = client;
    s->open[s->n++].tcp_port = tcp_port;
}

/* The path is in the first line: "POST /v3/kv/txn HTTP/1.1". */
static bool is_meant(const char *text, size_t n, bool all) {
    const char *end = memchr(text, '\r', n);
    size_t line = end ? (size_t)(end - text) : n;
    return all ? !holds(text, line, "/watch") : holds(text, line, "/kv/txn ");
}

bool answers_see(struct answers_due *s, int from, int to, const struct frame *f, bool all) {
    if (f->kind != FRAME_TCP || !f->data || f->end <= f->data)
        return false;
    const char *text = (const char *)f->destination + f->data; /* the frame's first byte */
    size_t n = f->end - f->data;
    if (begins(text, n, "POST ") || begins(text, n, "GET ")) {
        asked(s, from, f->source_port, is_meant(text, n, all));
        return false;
    }
    int i = find(s, to, f->destination_port);
    if (i < 0 || (!all && !holds(text, n, "\"succeeded\":true")))
        return false;
    forget(s, i);
    return true;
}
