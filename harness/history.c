#include "harness/history.h"

#include "agent/base/str.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORY_VERSION = 1 };

static const char *const names[SOURCE_N] = {"harness", "kernel", "wire",    "disk",
                                            "probe",   "job",    "launcher"};

const char *source_name(enum source s) {
    assert(s < SOURCE_N);
    return names[s];
}

bool source_is_evidence(enum source s) {
    return s == SOURCE_KERNEL || s == SOURCE_WIRE || s == SOURCE_DISK || s == SOURCE_PROBE;
}

static bool source_find(const char *name, enum source *ret) {
    for (int i = 0; i < SOURCE_N; i++)
        if (str_eq(name, names[i])) {
            *ret = (enum source)i;
            return true;
        }
    return false;
}

/* ---- records ---- */

bool record_is(const struct record *r, const char *kind) {
    return strcmp(r->kind, kind) == 0;
}

const struct json *record_get(const struct record *r, const char *key) {
    return json_get(r->fields, key);
}

const char *record_text(const struct record *r, const char *key) {
    return json_get_string(r->fields, key, "");
}

int64_t record_i64(const struct record *r, const char *key, int64_t absent) {
    return json_get_i64(r->fields, key, absent);
}

const struct record *history_newest(const struct history *h, enum source source, const char *kind) {
    for (size_t i = h->n; i-- > 0;)
        if (h->records[i]->source == source && record_is(h->records[i], kind))
            return h->records[i];
    return NULL;
}

/* The array doubles inside the arena: what is given up is never more than what is kept. */
static void add(struct history *h, struct record *r) {
    if (h->n == h->cap) {
        size_t cap = h->cap ? h->cap * 2 : 256;
        struct record **records = arena_array(&h->arena, struct record *, cap);
        if (h->n)
            memcpy(records, h->records, h->n * sizeof(struct record *));
        h->records = records;
        h->cap = cap;
    }
    h->records[h->n++] = r;
}

/* Takes one line apart and adds its record. The message lacks the place, the caller knows it. */
static int parse(struct history *h, const char *text, size_t len, struct err *err) {
    const struct json *line = json_parse(&h->arena, text, len, err);
    if (!line)
        return -EBADMSG;
    if (line->type != JSON_OBJECT)
        return err_say(err, -EBADMSG, "a record is a JSON object, this is not one");
    struct record r = {
        .seq = json_get_i64(line, "seq", -1),
        .t_ns = json_get_i64(line, "t", -1),
        .kind = json_get_string(line, "kind", ""),
        .node = json_get_string(line, "node", ""),
        .pid = json_get_i64(line, "pid", 0),
        .fields = line,
    };
    if (r.seq <= (h->n ? h->records[h->n - 1]->seq : 0))
        return err_say(err, -EBADMSG, "\"seq\" must be a number that rises from line to line");
    if (r.t_ns < 0 || r.t_ns > INT64_MAX / 4) /* so that sums of times do not overflow */
        return err_say(err, -EBADMSG, "\"t\" must be a time in nanoseconds");
    if (!source_find(json_get_string(line, "source", NULL), &r.source))
        return err_say(err, -EBADMSG,
                       "\"source\" must be one of harness, kernel, wire, disk, "
                       "probe, job, launcher");
    if (!*r.kind)
        return err_say(err, -EBADMSG, "\"kind\" is missing");
    struct record *kept = arena_new(&h->arena, struct record);
    *kept = r;
    add(h, kept);
    return 0;
}

/* ---- writing ---- */

int history_create(struct history *h, const char *path, struct err *err) {
    *h = (struct history){0};
    if (!path)
        return 0;
    h->out = fopen(path, "we");
    if (!h->out)
        return err_set(err, -errno, "create the history %s", path);
    return 0;
}

struct json_writer *history_begin(struct history *h, int64_t t_ns, enum source source,
                                  const char *kind) {
    assert(*kind);
    buf_clear(&h->line);
    h->writer = (struct json_writer){.out = &h->line};
    json_object(&h->writer, NULL);
    json_put_i64(&h->writer, "seq", h->n ? h->records[h->n - 1]->seq + 1 : 1);
    json_put_i64(&h->writer, "t", t_ns);
    json_put_string(&h->writer, "source", source_name(source));
    json_put_string(&h->writer, "kind", kind);
    h->head = h->line.len;
    return &h->writer;
}

/* Flushed line by line: what was seen before the harness was killed can be read afterwards. */
static void write_line(struct history *h) {
    if (!h->out)
        return;
    buf_putc(&h->line, '\n');
    errno = 0;
    bool written = fwrite(h->line.data, 1, h->line.len, h->out) == h->line.len;
    if ((!written || fflush(h->out) != 0) && !h->write_error)
        h->write_error = errno ? errno : EIO;
}

/* What a job says may be nested too deeply to be read back: its record is then kept without it. */
const struct record *history_end(struct history *h) {
    json_end_object(&h->writer);
    if (parse(h, h->line.data, h->line.len, NULL) < 0) {
        h->line.len = h->head;
        buf_puts(&h->line, ",\"unreadable\":true}");
        int rc = parse(h, h->line.data, h->line.len, NULL);
        assert(rc == 0);
        (void)rc;
    }
    write_line(h);
    return h->records[h->n - 1];
}

void history_fini(struct history *h) {
    if (!h)
        return;
    if (h->out)
        fclose(h->out);
    buf_fini(&h->line);
    arena_fini(&h->arena);
    *h = (struct history){0};
}

/* ---- reading ---- */

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

/* A last line without its newline that cannot be read was cut off while it was being written. */
static int read_lines(struct history *h, FILE *in, const char *path, struct err *err) {
    char *line = NULL;
    size_t cap = 0, number = 0;
    ssize_t len;
    int rc = 0;
    while (rc == 0 && (len = getline(&line, &cap, in)) > 0) {
        struct err why = {0};
        bool ended = line[len - 1] == '\n';
        number++;
        rc = parse(h, line, (size_t)len, &why);
        if (rc < 0 && !ended) {
            h->torn = true;
            rc = 0;
        } else if (rc < 0) {
            err_say(err, rc, "%s:%zu: %s", path, number, why.msg);
        }
    }
    if (rc == 0 && ferror(in))
        rc = err_set(err, errno ? -errno : -EIO, "read %s", path);
    free(line);
    return rc;
}

int history_load(struct history *h, const char *path, struct err *err) {
    *h = (struct history){0};
    FILE *in = fopen(path, "re");
    if (!in)
        return err_set(err, -errno, "open the history %s", path);
    int rc = read_lines(h, in, path, err);
    fclose(in);
    if (rc == 0)
        rc = check_first(h, path, err);
    if (rc < 0)
        history_fini(h);
    return rc;
}

void history_filter(struct history *ret, const struct history *h, unsigned mask) {
    *ret = (struct history){.torn = h->torn, .write_error = h->write_error};
    for (size_t i = 0; i < h->n; i++)
        if (mask & 1u << h->records[i]->source)
            add(ret, h->records[i]);
}
