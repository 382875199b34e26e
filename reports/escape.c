#include "reports/escape.h"

#include "base/printable.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void put_text(struct buf *out, const char *s, size_t n) {
    static const char special[] = "&<>\"\n";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#10;"};
    char shown[PRINTABLE_MAX];
    for (size_t taken; n; s += taken, n -= taken) {
        const char *at = strchr(special, *s);
        taken = printable_next(s, n, PRINTABLE_LINES, shown);
        buf_puts(out, at ? entities[at - special] : shown);
    }
}

void escape_put(struct buf *out, const char *s) {
    put_text(out, s, strlen(s));
}

/* What the conversion at p stands for, behind its % and precision (-1: none) with the flags z or
 * ll; returns where the format goes on. */
static const char *put_argument(struct buf *out, const char *p, int precision, va_list *ap) {
    size_t wide = strspn(p, "zl");
    const char *s;
    switch (p[wide]) {
    case 's':
        s = va_arg(*ap, const char *);
        put_text(out, s, precision < 0 ? strlen(s) : strnlen(s, (size_t)precision));
        break;
    case 'c':
        buf_putc(out, (char)va_arg(*ap, int));
        break;
    case 'd':
        buf_printf(out, "%lld", wide ? va_arg(*ap, long long) : va_arg(*ap, int));
        break;
    case 'u':
        buf_printf(out, "%llu", wide ? va_arg(*ap, unsigned long long) : va_arg(*ap, unsigned));
        break;
    case 'f':
        buf_printf(out, "%.*f", precision, va_arg(*ap, double)); /* below 0 is as if not given */
        break;
    case 'g':
        buf_printf(out, "%.*g", precision, va_arg(*ap, double));
        break;
    default:
        assert(p[wide] == '%');
        buf_putc(out, '%');
    }
    return p + wide + 1;
}

void escape_vprintf(struct buf *out, const char *fmt, va_list given) {
    va_list ap;
    va_copy(ap, given);
    for (const char *at = strchrnul(fmt, '%'); *at; at = strchrnul(fmt, '%')) {
        int precision = -1;
        buf_put(out, fmt, (size_t)(at++ - fmt));
        if (*at == '.') {
            precision = at[1] == '*' ? va_arg(ap, int) : atoi(at + 1);
            at += 1 + strspn(at + 1, "*0123456789");
        }
        fmt = put_argument(out, at, precision, &ap);
    }
    buf_puts(out, fmt);
    va_end(ap);
}

void escape_printf(struct buf *out, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    escape_vprintf(out, fmt, ap);
    va_end(ap);
}
