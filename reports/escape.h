/* escape: text made safe for XML and HTML, between tags and in attributes with double quotes. */
#pragma once

#include "base/buf.h"

/* XML 1.0 has no place for most control characters, nor for bytes that are no UTF-8, and a page no
 * better one than a terminal for what turns text around: all of that is spelled out (printable.h).
 */
void escape_put(struct buf *out, const char *s);

/* The format is markup; what stands for a %s in it is escaped. Of printf's conversions there are c
 * d u s f g, with z or ll and a precision. */
void escape_printf(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void escape_vprintf(struct buf *out, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
