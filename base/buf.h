/* buf: bytes that grow. {0} is an empty one. Always followed by a NUL that is not counted, so
 * buf_str() can be printed. Never fails (out of memory aborts). */
#pragma once

#include <stddef.h>
#include <stdarg.h>

struct buf {
    char *data;
    size_t len, cap;
};

void buf_put(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);
/* The text so far, "" when empty; valid until the next put. */
const char *buf_str(const struct buf *b);
void buf_clear(struct buf *b); /* empties, keeps the memory */
void buf_fini(struct buf *b);
/* BUF_FINI struct buf b = {0}; ends with its block. */
#define BUF_FINI __attribute__((cleanup(buf_fini)))
