#include "harness/history/history.h"

#include "base/str.h"
#include "harness/history/history_kinds.h"
#include "harness/history/history_pack.h"
#include "harness/history/history_parse.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[SOURCE_N] = {"harness", "kernel", "wire",     "disk",
                                            "probe",   "job",    "launcher", "user"};

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

int64_t record_there_ns(const struct record *r) {
    return r->bound_ns ? record_i64(r, "there", r->t_ns) : r->t_ns;
}

/* No more than what is told of it as a whole. */
int64_t record_late_ns(const struct record *r) {
    int64_t late = r->bound_ns ? record_i64(r, "late", 0) : 0;
    return late < 0 ? 0 : late > 2 * r->bound_ns ? 2 * r->bound_ns : late;
}

void record_put(const struct record *r, struct json_writer *w) {
    json_object(w, NULL);
    json_put_i64(w, "seq", r->seq);
    json_put_i64(w, "t", r->t_ns);
    if (r->bound_ns)
        json_put_i64(w, "bound", r->bound_ns);
    json_put_string(w, "source", source_name(r->source));
    json_put_string(w, "kind", r->kind);
    if (*r->node)
        json_put_string(w, "node", r->node);
    if (r->pid)
        json_put_i64(w, "pid", r->pid);
    json_each(it, r->fields) json_put_tree(w, it->key, it);
    json_end_object(w);
}

const struct record *history_record(const struct history *h, int64_t seq) {
    size_t low = 0, high = h->n; /* numbers rise from line to line */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (h->records[middle]->seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low < h->n && h->records[low]->seq == seq ? h->records[low] : NULL;
}

const struct record *history_newest(const struct history *h, enum source source, const char *kind) {
    for (size_t i = h->n; i-- > 0;)
        if (h->records[i]->source == source && record_is(h->records[i], kind))
            return h->records[i];
    return NULL;
}

/* The number of a process that is gone is given to another. */
const char *history_output(const struct history *h, int64_t pid, int64_t t_ns) {
    const char *name = "";
    history_each(r, h) {
        if (r->source == SOURCE_PROBE && record_is(r, "worker-start") && r->pid == pid &&
            r->t_ns <= t_ns)
            name = record_text(r, "output");
    }
    return strchr(name, '/') ? "" : name;
}

bool history_is_cut(const struct history *h) {
    return h->torn || h->too_long || !history_newest(h, SOURCE_HARNESS, "job-end");
}

/* There is one, and it is the first: it is asked for each worker that failed. */
bool history_is_simulated(const struct history *h) {
    history_each(r, h) {
        if (r->source == SOURCE_HARNESS && record_is(r, "run"))
            return str_eq(record_text(r, "kernel"), "simulated");
    }
    return false;
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

/* What every record has stands in the record itself. */
static void take_out_common(struct json *line) {
    static const char *const common[] = {"seq", "t", "bound", "source", "kind", "node", "pid"};
    for (struct json **at = &line->first; *at;) {
        bool known = false;
        for (size_t i = 0; i < sizeof(common) / sizeof(*common) && !known; i++)
            known = strcmp((*at)->key, common[i]) == 0;
        if (known)
            *at = (*at)->next;
        else
            at = &(*at)->next;
        line->length -= known;
    }
}

static int look(const struct history *h, const struct json *line, struct record *ret,
                struct err *err) {
    if (line->type != JSON_OBJECT)
        return err_say(err, -EBADMSG, "a record is a JSON object, this is not one");
    *ret = (struct record){
        .seq = json_get_i64(line, "seq", -1),
        .t_ns = json_get_i64(line, "t", -1),
        .bound_ns = json_get_i64(line, "bound", 0),
        .kind = json_get_string(line, "kind", ""),
        .node = json_get_string(line, "node", ""),
        .pid = json_get_i64(line, "pid", 0),
    };
    if (ret->seq <= (h->n ? h->records[h->n - 1]->seq : 0))
        return err_say(err, -EBADMSG, "\"seq\" must be a number that rises from line to line");
    if (ret->t_ns < 0 || ret->t_ns > INT64_MAX / 4) /* so that sums of times do not overflow */
        return err_say(err, -EBADMSG, "\"t\" must be a time in nanoseconds");
    if (ret->bound_ns < 0 || ret->bound_ns > INT64_MAX / 4)
        return err_say(err, -EBADMSG, "\"bound\" must be so many nanoseconds, or none");
    if (!source_find(json_get_string(line, "source", NULL), &ret->source))
        return err_say(err, -EBADMSG,
                       "\"source\" must be one of harness, kernel, wire, disk, probe, job, "
                       "launcher, user");
    if (!*ret->kind)
        return err_say(err, -EBADMSG, "\"kind\" is missing");
    return 0;
}

static void note_gap(struct history *h, int64_t seq) {
    int64_t last = h->n ? h->records[h->n - 1]->seq : 0;
    if (seq == last + 1)
        return;
    if (!h->missing)
        h->gap = last;
    h->missing += seq - last - 1; /* no sum of them is more than the last number */
}

int history_parse(struct history *h, const char *text, size_t len, bool foreign, struct err *err) {
    struct record r;
    arena_clear(&h->scratch);
    struct json *line = json_parse(&h->scratch, text, len, err);
    int rc = line ? look(h, line, &r, err) : -EBADMSG;
    if (rc == 0 && foreign)
        rc = history_kind_check(r.source, r.kind, line, err);
    if (rc < 0)
        return rc;
    note_gap(h, r.seq);
    if (!h->pack)
        h->pack = pack_new(&h->arena);
    take_out_common(line);
    struct record *kept = arena_new(&h->arena, struct record);
    *kept = r;
    kept->kind = pack_text(h->pack, r.kind, strlen(r.kind));
    kept->node = pack_text(h->pack, r.node, strlen(r.node));
    kept->fields = pack_tree(h->pack, line);
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

void history_create_in(struct history *h, int fd) {
    *h = (struct history){.out = fdopen(fd, "w")};
    if (!h->out)
        abort(); /* out of memory */
}

struct json_writer *history_begin_at(struct history *h, const struct history_stamp *at,
                                     enum source source, const char *kind) {
    assert(*kind);
    buf_clear(&h->line);
    h->writer = (struct json_writer){.out = &h->line};
    json_object(&h->writer, NULL);
    json_put_i64(&h->writer, "seq", h->n ? h->records[h->n - 1]->seq + 1 : 1);
    json_put_i64(&h->writer, "t", at->t_ns);
    if (at->bound_ns) {
        json_put_i64(&h->writer, "bound", at->bound_ns);
        json_put_i64(&h->writer, "there", at->there_ns);
        if (at->late_ns)
            json_put_i64(&h->writer, "late", at->late_ns);
    }
    json_put_string(&h->writer, "source", source_name(source));
    json_put_string(&h->writer, "kind", kind);
    h->head = h->line.len;
    return &h->writer;
}

struct json_writer *history_begin(struct history *h, int64_t t_ns, enum source source,
                                  const char *kind) {
    return history_begin_at(h, &(struct history_stamp){.t_ns = t_ns}, source, kind);
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
    if (history_parse(h, h->line.data, h->line.len, false, NULL) < 0) {
        h->line.len = h->head;
        buf_puts(&h->line, ",\"unreadable\":true}");
        int rc = history_parse(h, h->line.data, h->line.len, false, NULL);
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
    pack_free(h->pack);
    arena_fini(&h->scratch);
    arena_fini(&h->arena);
    *h = (struct history){0};
}

/* As much of h as is no record. */
static struct history like(const struct history *h) {
    return (struct history){.torn = h->torn,
                            .too_long = h->too_long,
                            .missing = h->missing,
                            .gap = h->gap,
                            .write_error = h->write_error};
}

/* Counted first: of millions of records an array that doubles would take twice what it needs. */
void history_filter(struct history *ret, const struct history *h, unsigned mask) {
    size_t n = 0;
    history_each(r, h) n += (mask >> r->source & 1u);
    *ret = like(h);
    ret->records = arena_array(&ret->arena, struct record *, n + 1);
    ret->cap = n + 1;
    for (size_t i = 0; i < h->n; i++)
        if (mask & 1u << h->records[i]->source)
            add(ret, h->records[i]);
}

/* The fields with another t0; those in front of it are copied, those behind it shared. */
static const struct json *with_t0(struct arena *a, const struct json *fields, int64_t by_ns) {
    struct json *copy = arena_new(a, struct json), **link = &copy->first;
    *copy = *fields;
    json_each(it, fields) {
        struct json *one = arena_new(a, struct json);
        *one = *it;
        *link = one;
        link = &one->next;
        if (strcmp(it->key, "t0") == 0 && it->type == JSON_INT) {
            one->integer += by_ns;
            break;
        }
    }
    return copy;
}

void history_retime(struct history *ret, const struct history *h, const int64_t *t_ns) {
    *ret = like(h);
    ret->records = arena_array(&ret->arena, struct record *, h->n + 1);
    ret->cap = h->n + 1;
    for (size_t i = 0; i < h->n; i++) {
        struct record *r = h->records[i];
        if (r->t_ns != t_ns[i]) {
            r = arena_new(&ret->arena, struct record);
            *r = *h->records[i];
            r->t_ns = t_ns[i];
            if (record_is(r, "fault-in-force"))
                r->fields = with_t0(&ret->arena, r->fields, t_ns[i] - h->records[i]->t_ns);
        }
        add(ret, r);
    }
}
