/* Collects what is wrong with a file, each with its place and the line that it stands on. */
#include "harness/scenario/scenario.h"

#include "base/printable.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_SHOWN = 160 };

void diagnostics_fini(struct diagnostics *d) {
    for (int i = 0; i < d->included_n; i++) {
        free(d->included[i].file);
        buf_fini(&d->included[i].source);
    }
    free(d->included);
    buf_fini(&d->source);
    buf_fini(&d->out);
}

struct buf *diagnostics_source(struct diagnostics *d, int file) {
    assert(file <= d->included_n);
    return file ? &d->included[file - 1].source : &d->source;
}

/* The line'th line of the source, without its end; NULL when there is none. */
static const char *find_line(const struct buf *source, int line, size_t *ret_len) {
    const char *s = buf_str(source), *end = s + source->len;
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

/* Columns of what is shown for a character. */
static int columns(const char *shown) {
    int n = 0;
    for (; *shown; shown++)
        n += !continues_character(*shown);
    return n;
}

/* The offending line and a caret below the column; a tab stays a tab so that both line up, and what
 * is not fit for a terminal stands there spelled out. */
static void put_source(struct diagnostics *d, struct place p, struct buf *out) {
    size_t n = 0;
    const char *s = find_line(diagnostics_source(d, p.file), p.line, &n);
    if (!s || !n || p.column > LINE_SHOWN)
        return;
    bool cut = n > LINE_SHOWN;
    for (n = cut ? LINE_SHOWN : n; cut && n && continues_character(s[n]); n--)
        ;
    buf_puts(out, "    ");
    printable_put(out, s, n, PRINTABLE_LINES);
    buf_puts(out, cut ? " ...\n    " : "\n    ");
    char shown[PRINTABLE_MAX];
    for (int column = 1; n && column < p.column; column++) {
        size_t taken = printable_next(s, n, PRINTABLE_LINES, shown);
        if (*shown == '\t')
            buf_putc(out, '\t');
        else
            buf_printf(out, "%*s", columns(shown), "");
        s += taken;
        n -= taken;
    }
    buf_puts(out, "^\n");
}

/* In the words of who typed it: observe.step comes from --observe step=REGEX. */
static void put_option(const char *set, struct buf *out) {
    static const char observe[] = "observe.";
    bool observed = strncmp(set, observe, sizeof(observe) - 1) == 0;
    const char *key = observed ? set + sizeof(observe) - 1 : set;
    buf_printf(out, "%s %.*s: ", observed ? "--observe" : "--set", (int)strcspn(key, "="), key);
}

static void put_place(const struct diagnostics *d, struct place p, struct buf *out) {
    if (p.line < 0 && d->set) {
        put_option(d->set[-p.line - 1], out);
    } else if (p.line > 0) {
        buf_printf(out, "%s:%d:%d: ", p.file ? d->included[p.file - 1].file : d->file, p.line,
                   p.column);
    } else {
        buf_printf(out, "%s: ", d->file);
    }
}

static bool comes_before(struct place a, struct place b) {
    if (a.line <= 0 || b.line <= 0)
        return a.line > 0; /* what is in no line comes last */
    if (a.file != b.file)
        return a.file < b.file;
    return a.line < b.line || (a.line == b.line && a.column < b.column);
}

/* Keys are read table by table, errors are read from top to bottom: puts the message between those
 * that are there. */
static void insert(struct diagnostics *d, struct place p, const struct buf *message) {
    size_t n = (size_t)d->errors - 1, i = n;
    while (i > 0 && comes_before(p, d->said[i - 1].place))
        i--;
    size_t at = i < n ? d->said[i].at : d->out.len, behind = d->out.len - at;
    buf_put(&d->out, message->data, message->len);
    memmove(d->out.data + at + message->len, d->out.data + at, behind);
    memcpy(d->out.data + at, message->data, message->len);
    for (size_t j = n; j > i; j--) {
        d->said[j] = d->said[j - 1];
        d->said[j].at += message->len;
    }
    d->said[i].place = p;
    d->said[i].at = at;
}

/* Nobody reads a value of thousands of characters again; what is wrong with it stands at the ends.
 */
static void cut(struct buf *message) {
    enum { END = 300 };
    size_t n = message->len, from = END, to = n - END;
    if (n <= 3 * END)
        return;
    while (from && continues_character(message->data[from]))
        from--;
    while (to < n && continues_character(message->data[to]))
        to++;
    struct buf out = {0};
    buf_put(&out, message->data, from);
    buf_puts(&out, " ... ");
    buf_put(&out, message->data + to, n - to);
    buf_fini(message);
    *message = out;
}

bool diagnostics_add(struct diagnostics *d, struct place p, const char *fmt, ...) {
    d->errors++;
    if (d->errors > DIAGNOSTICS_SHOWN + 1)
        return false;
    if (d->errors == DIAGNOSTICS_SHOWN + 1) {
        buf_printf(&d->out, "%s: more than %d errors; the rest is left out\n", d->file,
                   DIAGNOSTICS_SHOWN);
        return false;
    }
    struct buf message = {0}, text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    cut(&text);
    BUF_FINI struct buf sentence = {0};
    put_place(d, p, &sentence);
    buf_put(&sentence, text.data, text.len);
    printable_puts(&message, buf_str(&sentence));
    buf_putc(&message, '\n');
    buf_fini(&text);
    if (p.line > 0)
        put_source(d, p, &message);
    insert(d, p, &message);
    buf_fini(&message);
    return false;
}
