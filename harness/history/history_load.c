/* Reads a history from a file, line by line, within bounds. */
#include "base/sys/file.h"
#include "harness/history/history_pack.h"
#include "harness/history/history_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORY_VERSION = 1, BLOCK = 1 << 16 };

/* A line of ours is some kilobytes; the environment of a worker and the list of what is left over
 * may be more. */
enum { LINE_MAX_BYTES = 4 << 20 };

/* ---- lines of a file, none longer than that ---- */

struct line_source {
    FILE *in;
    struct buf held; /* read, from `at` on not yet given */
    size_t at;
    bool ended;
};

/* The next line with its line feed, where it has one; valid until the next call. 1: a line, 0: no
 * more, -EMSGSIZE: it is too long, else -errno. */
static int line_next(struct line_source *s, const char **ret, size_t *ret_len) {
    size_t looked = 0;
    for (;;) {
        const char *from = buf_str(&s->held) + s->at; /* nothing is held before the first */
        size_t have = s->held.len - s->at;
        const char *end = have > looked ? memchr(from + looked, '\n', have - looked) : NULL;
        if (end || (s->ended && have)) {
            *ret = from;
            *ret_len = end ? (size_t)(end + 1 - from) : have;
            s->at += *ret_len;
            return *ret_len > LINE_MAX_BYTES ? -EMSGSIZE : 1;
        }
        if (have > LINE_MAX_BYTES)
            return -EMSGSIZE;
        if (s->ended)
            return 0;
        char block[BLOCK];
        looked = have;
        buf_consume(&s->held, s->at);
        s->at = 0;
        errno = 0;
        size_t n = fread(block, 1, sizeof(block), s->in);
        buf_put(&s->held, block, n);
        s->ended = n < sizeof(block);
        if (ferror(s->in))
            return errno ? -errno : -EIO;
    }
}

/* ---- a history ---- */

static int check_first(const struct history *h, const char *path, struct err *err) {
    const struct record *first = h->n ? h->records[0] : NULL;
    if (!first || first->source != SOURCE_HARNESS || !record_is(first, "run"))
        return err_say(err, -EBADMSG, "%s:1: this is no history: its first record must be \"run\"",
                       path);
    int64_t v = record_i64(first, "v", 0);
    if (v != HISTORY_VERSION)
        return err_say(err, -EBADMSG,
                       "%s:1: written in version %lld of the format; this rankquake reads %d", path,
                       (long long)v, HISTORY_VERSION);
    return 0;
}

static bool is_full(const struct history *h, size_t bytes_max) {
    size_t per_record = sizeof(struct record) + 2 * sizeof(struct record *);
    return h->pack && pack_bytes(h->pack) + h->n * per_record > bytes_max;
}

/* A last line without its newline that cannot be read was cut off while it was being written. */
static int read_lines(struct history *h, struct line_source *s, size_t bytes_max, const char *path,
                      struct err *err) {
    const char *line;
    size_t len, number = 0;
    int rc;
    while ((rc = line_next(s, &line, &len)) == 1) {
        struct err why = {0};
        number++;
        if (is_full(h, bytes_max)) {
            h->too_long = true;
            return 0;
        }
        rc = history_parse(h, line, len, true, &why);
        if (rc < 0 && line[len - 1] != '\n') {
            h->torn = true;
            return check_first(h, path, err);
        }
        if (rc < 0)
            return err_say(err, rc, "%s:%zu: %s", path, number, why.msg);
        if (number == 1 && (rc = check_first(h, path, err)) < 0)
            return rc;
    }
    if (rc == -EMSGSIZE)
        return err_say(err, -EBADMSG, "%s:%zu: the line is longer than %d MB; no record is", path,
                       number + 1, LINE_MAX_BYTES >> 20);
    return rc < 0 ? err_set(err, rc, "read %s", path) : check_first(h, path, err);
}

static int load(struct history *h, FILE *in, const char *path, size_t bytes_max, struct err *err) {
    *h = (struct history){0};
    struct line_source s = {.in = in};
    int rc = read_lines(h, &s, bytes_max, path, err);
    fclose(s.in);
    buf_fini(&s.held);
    arena_fini(&h->scratch);
    if (rc < 0)
        history_fini(h);
    return rc;
}

int history_load_within(struct history *h, const char *path, size_t bytes_max, struct err *err) {
    int fd = file_open_plain(path, err);
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !in)
        abort(); /* out of memory */
    return in ? load(h, in, path, bytes_max, err) : fd;
}

int history_load_from(struct history *h, int fd, const char *path, struct err *err) {
    FILE *in = fdopen(fd, "r");
    if (!in)
        abort(); /* out of memory */
    return load(h, in, path, HISTORY_BYTES_MAX, err);
}

int history_load(struct history *h, const char *path, struct err *err) {
    return history_load_within(h, path, HISTORY_BYTES_MAX, err);
}

int history_take(struct history *h, const char *line, size_t len, struct err *err) {
    struct err why = {0};
    int rc = history_parse(h, line, len, true, &why);
    if (rc < 0)
        return err_say(err, rc, "record %zu: %s", h->n + 1, why.msg);
    return h->n == 1 ? check_first(h, "history.jsonl", err) : 0;
}
