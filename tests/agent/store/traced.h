/* traced: what a source asks of others is written down in one text, in its order, and one of the calls may fail. To be included
 * before the source whose calls are played. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct buf trace;
static const char *trace_failing; /* the call that fails; "": none does */
static int trace_failing_at;      /* which of that name, from 1 on */

static inline void trace_begin(const char *failing, int at) {
    buf_clear(&trace);
    trace_failing = failing;
    trace_failing_at = at;
}

__attribute__((format(printf, 1, 2))) static inline void trace_note(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&trace, fmt, ap);
    va_end(ap);
    buf_putc(&trace, '\n');
}

/* Of a call that may fail: whether it does. */
static inline bool trace_fails(const char *name) {
    return strcmp(name, trace_failing) == 0 && --trace_failing_at == 0;
}

static inline int trace_code(const char *name, struct err *err) {
    return trace_fails(name) ? err_say(err, -5, "%s failed", name) : 0;
}

static inline void trace_is(const char *expected) {
    assert_string_equal(buf_str(&trace), expected);
}
