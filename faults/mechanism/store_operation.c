#include "faults/mechanism/store_operation.h"

#include <string.h>

const char *const store_operation_names[] = {
#define X(name, word, path) word,
    STORE_OPERATIONS(X)
#undef X
        NULL,
};

static bool begins(const char *text, size_t n, const char *with) {
    size_t len = strlen(with);
    return n >= len && memcmp(text, with, len) == 0;
}

static bool holds(const char *text, size_t n, const char *what) {
    return memmem(text, n, what, strlen(what));
}

/* Of v2 the method says it: "PUT /v2/keys/x HTTP/1.1"; a watch is a GET that waits. */
static enum store_operation read_v2(const char *line, size_t n) {
    if (begins(line, n, "DELETE "))
        return STORE_DELETE;
    if (!begins(line, n, "GET "))
        return STORE_PUT;
    return holds(line, n, "wait=true") ? STORE_WATCH : STORE_RANGE;
}

static enum store_operation read_line(const char *line, size_t n) {
    static const char *const paths[] = {
#define X(name, word, path) path,
        STORE_OPERATIONS(X)
#undef X
    };
    if (holds(line, n, " /v2/keys"))
        return read_v2(line, n);
    for (int i = 0; begins(line, n, "POST /v3") && i < STORE_OPERATIONS_N; i++)
        if (holds(line, n, paths[i]))
            return (enum store_operation)i;
    return STORE_OPERATION_NONE;
}

/* The first line: its end may lie in the next segment, for a very long key. */
static enum store_operation read_request(const char *text, size_t n) {
    static const char *const methods[] = {"POST /v", "PUT /v", "GET /v", "DELETE /v"};
    const char *end = memchr(text, '\r', n);
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (begins(text, n, methods[i]))
            return read_line(text, end ? (size_t)(end - text) : n);
    return STORE_OPERATION_NONE;
}

/* The place of a connection; s->n: it has none. */
static int place_of(const struct store_requests *s, int client, uint16_t tcp_port) {
    int i = 0;
    while (i < s->n && (s->newest[i].client != client || s->newest[i].tcp_port != tcp_port))
        i++;
    return i;
}

static void take_out(struct store_requests *s, int i) {
    if (i < s->n)
        memmove(&s->newest[i], &s->newest[i + 1], (size_t)(--s->n - i) * sizeof(s->newest[0]));
}

/* False: that was seen before. */
static bool is_new(struct store_requests *s, int client, const struct frame *f) {
    int i = place_of(s, client, f->source_port);
    if (i < s->n && (int32_t)(f->sequence - s->newest[i].sequence) <= 0)
        return false;
    if (i == s->n && s->n == STORE_CONNECTIONS_MAX)
        i = 0; /* the oldest makes room */
    take_out(s, i);
    s->newest[s->n].client = client;
    s->newest[s->n].tcp_port = f->source_port;
    s->newest[s->n++].sequence = f->sequence;
    return true;
}

enum store_operation store_requests_see(struct store_requests *s, int client,
                                        const struct frame *f) {
    if (f->kind != FRAME_TCP)
        return STORE_OPERATION_NONE;
    if (f->tcp_flags & TCP_SYN) /* it counts anew, though its client took the same port */
        take_out(s, place_of(s, client, f->source_port));
    if (!f->data || f->end <= f->data)
        return STORE_OPERATION_NONE;
    const char *text = (const char *)f->destination + f->data; /* the frame's first byte */
    enum store_operation op = read_request(text, f->end - f->data);
    return op != STORE_OPERATION_NONE && is_new(s, client, f) ? op : STORE_OPERATION_NONE;
}
