#include "harness/scenario/scenario.h"

#include <string.h>

enum {
    ERRORS_SHOWN = 50, /* nobody reads more, and a broken generator can make thousands */
    LINE_SHOWN = 160,
};

void diagnostics_fini(struct diagnostics *d) {
    buf_fini(&d->source);
    buf_fini(&d->out);
}

/* The line'th line of the source, without its end; NULL when there is none. */
static const char *find_line(const struct diagnostics *d, int line, size_t *ret_len) {
    const char *s = buf_str(&d->source), *end = s + d->source.len;
    for (int i = 1; i < line; i++) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        if (!nl)
            return NULL;
        s = nl + 1;
    }
    const char *nl = memchr(s, '\n', (size_t)(end - s));
    size_t n = (size_t)((nl ? nl : end) - s);
    if (n && s[n - 1] == '\r')
        n--;
    *ret_len = n;
    return s;
}

static bool continues_character(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The offending line and a caret below the column; a tab stays a tab so that both line up, any
 * other byte that would move a terminal's cursor becomes a question mark. */
static void put_source(struct diagnostics *d, struct place p) {
    size_t n = 0;
    const char *s = find_line(d, p.line, &n);
    if (!s || !n || p.column > LINE_SHOWN)
        return;
    bool cut = n > LINE_SHOWN;
    for (n = cut ? LINE_SHOWN : n; cut && n && continues_character(s[n]); n--)
        ;
    buf_puts(&d->out, "    ");
    for (size_t i = 0; i < n; i++)
        buf_putc(&d->out, (unsigned char)s[i] < 32 && s[i] != '\t' ? '?' : s[i]);
    buf_puts(&d->out, cut ? " ...\n    " : "\n    ");
    int column = 1;
    for (size_t i = 0; i < n && column < p.column; i++) {
        if (!continues_character(s[i]))
            column++;
        if (!continues_character(s[i]) || column == 1)
            buf_putc(&d->out, s[i] == '\t' ? '\t' : ' ');
    }
    buf_puts(&d->out, "^\n");
}

static void put_place(struct diagnostics *d, struct place p) {
    if (p.line < 0 && d->set) {
        const char *set = d->set[-p.line - 1];
        buf_printf(&d->out, "--set %.*s: ", (int)strcspn(set, "="), set);
    } else if (p.line > 0) {
        buf_printf(&d->out, "%s:%d:%d: ", d->file, p.line, p.column);
    } else {
        buf_printf(&d->out, "%s: ", d->file);
    }
}

void diagnostics_add(struct diagnostics *d, struct place p, const char *fmt, ...) {
    d->errors++;
    if (d->errors > ERRORS_SHOWN + 1)
        return;
    if (d->errors == ERRORS_SHOWN + 1) {
        buf_printf(&d->out, "%s: more than %d errors; the rest is left out\n", d->file,
                   ERRORS_SHOWN);
        return;
    }
    put_place(d, p);
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&d->out, fmt, ap);
    va_end(ap);
    buf_putc(&d->out, '\n');
    if (p.line > 0)
        put_source(d, p);
}
