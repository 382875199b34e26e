#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reserve(struct buf *b, size_t more) {
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap *= 2;
    b->data = realloc(b->data, cap);
    if (!b->data)
        abort();
    b->cap = cap;
}

void buf_put(struct buf *b, const void *p, size_t n) {
    reserve(b, n);
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s) {
    buf_put(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c) {
    buf_put(b, &c, 1);
}

/* Once, where there is room for it already. */
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    size_t room = b->data ? b->cap - b->len : 0;
    int n = vsnprintf(room ? b->data + b->len : NULL, room, fmt, ap);
    if ((size_t)n >= room) {
        reserve(b, (size_t)n);
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    b->len += (size_t)n;
}

void buf_printf(struct buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_consume(struct buf *b, size_t n) {
    if (!b->data)
        return;
    memmove(b->data, b->data + n, b->len - n + 1);
    b->len -= n;
}

const char *buf_str(const struct buf *b) {
    return b->data ? b->data : "";
}

void buf_clear(struct buf *b) {
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

void buf_fini(struct buf *b) {
    free(b->data);
    *b = (struct buf){0};
}
