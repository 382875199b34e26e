#include "base/sys/printing.h"

#include "base/hidden.h"
#include "base/printable.h"
#include "base/sys/file.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What stands behind a FILE of ours. It has no buffer: that is the FILE's. */
struct printing_stream {
    FILE *file; /* NULL: the C library's own */
    int fd;
    bool as_it_is;
    struct buf begun; /* of a character or of a hidden text whose end comes with the next write */
    struct buf text;  /* of one write */
};

static const struct hidden nothing, *covered = &nothing;

static struct printing_stream streams[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};

static struct printing_stream *stream_of(FILE *out) {
    for (size_t i = 0; i < 2; i++)
        if (streams[i].file && streams[i].file == out)
            return &streams[i];
    return NULL;
}

void printing_hide(const struct hidden *h) {
    covered = h ? h : &nothing;
}

/* A block of a FILE ends anywhere, also within a character. */
static void take(struct printing_stream *s, const char *bytes, size_t n, int how) {
    BUF_FINI struct buf whole = {0};
    buf_put(&whole, s->begun.data, s->begun.len);
    buf_put(&whole, bytes, n);
    hidden_cover(covered, whole.data, whole.len);
    size_t character = printable_unfinished(whole.data, whole.len);
    size_t text = hidden_unfinished(covered, whole.data, whole.len);
    size_t ends = whole.len - (character > text ? character : text);
    buf_clear(&s->begun);
    buf_put(&s->begun, whole.data + ends, whole.len - ends);
    printable_put(&s->text, whole.data, ends, how);
}

/* Nothing is cut within it: whoever puts it has put it whole. */
static bool put_as_it_is(struct printing_stream *s, const char *bytes, size_t n) {
    BUF_FINI struct buf whole = {0};
    buf_put(&whole, bytes, n);
    hidden_cover(covered, whole.data, whole.len);
    return file_write_all(s->fd, buf_str(&whole), whole.len, NULL) == 0;
}

static ssize_t on_write(void *cookie, const char *bytes, size_t n) {
    struct printing_stream *s = cookie;
    if (s->as_it_is)
        return put_as_it_is(s, bytes, n) ? (ssize_t)n : 0;
    take(s, bytes, n, PRINTABLE_LINES);
    int code = file_write_all(s->fd, buf_str(&s->text), s->text.len, NULL);
    buf_clear(&s->text);
    return code ? 0 : (ssize_t)n;
}

/* What waits goes before what is put around it, and ends here: what ended within a character says
 * so. */
static void put_begun(struct printing_stream *s, int how) {
    printable_put(&s->text, s->begun.data, s->begun.len, how);
    file_write_all(s->fd, buf_str(&s->text), s->text.len, NULL);
    buf_clear(&s->begun);
    buf_clear(&s->text);
}

static void put_rest(void) {
    for (size_t i = 0; i < 2; i++) {
        struct printing_stream *s = &streams[i];
        fflush(s->file);
        put_begun(s, 0);
        buf_fini(&s->begun);
        buf_fini(&s->text);
    }
}

static void put_in_place(struct printing_stream *s, FILE **standard) {
    static const cookie_io_functions_t functions = {.write = on_write};
    s->file = fopencookie(s, "w", functions);
    if (!s->file)
        abort(); /* out of memory */
    *standard = s->file;
}

void printing_begin(void) {
    put_in_place(&streams[0], &stdout);
    put_in_place(&streams[1], &stderr);
    setvbuf(stdout, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
    setvbuf(stderr, NULL, _IONBF, 0);
    atexit(put_rest);
}

bool printing_put(FILE *out, const char *text, size_t n) {
    struct printing_stream *s = stream_of(out);
    if (!s)
        return fwrite(text, 1, n, out) == n;
    fflush(out); /* what was said before */
    put_begun(s, PRINTABLE_LINES);
    s->as_it_is = true;
    bool written = fwrite(text, 1, n, out) == n;
    written &= fflush(out) == 0;
    s->as_it_is = false;
    return written;
}

void printing_line(FILE *out, const char *fmt, ...) {
    BUF_FINI struct buf text = {0}, line = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    printable_puts(&line, buf_str(&text));
    buf_putc(&line, '\n');
    fwrite(buf_str(&line), 1, line.len, out);
}

int printing_fd(FILE *out) {
    const struct printing_stream *s = stream_of(out);
    return s ? s->fd : fileno(out);
}

static bool plain;

void printing_be_plain(void) {
    plain = true;
}

bool printing_at_terminal(FILE *out) {
    return !plain && isatty(printing_fd(out));
}
