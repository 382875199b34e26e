#include "faults/mechanism/disk_record.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/utf8.h"
#include "faults/mechanism/disk_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 1, LINES_MAX = 512 << 20 };
static const uint64_t bytes_default = 1 << 30;

const char *const disk_deed_names[DISK_DEEDS_N] = {
    [DISK_HAD] = "had",           [DISK_CREATE] = "create",
    [DISK_MKDIR] = "mkdir",       [DISK_SYMLINK] = "symlink",
    [DISK_LINK] = "link",         [DISK_RENAME] = "rename",
    [DISK_EXCHANGE] = "exchange", [DISK_UNLINK] = "unlink",
    [DISK_RMDIR] = "rmdir",       [DISK_WRITE] = "write",
    [DISK_TRUNCATE] = "truncate", [DISK_ALLOCATE] = "allocate",
    [DISK_SYNC] = "sync",         [DISK_SYNC_DATA] = "sync_data",
    [DISK_SYNC_ALL] = "sync_all", [DISK_OPEN] = "open",
    [DISK_CLOSE] = "close",       [DISK_MARK] = "mark",
    [DISK_MODE] = "mode",         [DISK_SYNC_RANGE] = "sync_range",
};

static bool has_bytes(const struct disk_operation *o) {
    return (o->deed == DISK_HAD || o->deed == DISK_WRITE) && o->size;
}

/* ---- writing ---- */

struct disk_recorder {
    int lines, bytes;
    char *path;
    uint64_t at, max;
    bool full;
    int code; /* what went wrong first */
    struct buf line;
    struct disk_spool *spool; /* or NULL: each operation is written at once */
};

static int create(const char *path, int *ret, struct err *err) {
    *ret = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    return *ret < 0 ? err_set(err, -errno, "make %s, the record of a disk", path) : 0;
}

/* What fails first is remembered, and ends the record. */
static void append(struct disk_recorder *r, int fd, const void *data, size_t len) {
    int code = r->code ? r->code : file_write_all(fd, data, len, NULL);
    if (code) {
        r->code = code;
        r->full = true;
    }
}

int disk_recorder_hold(struct disk_recorder *r, struct err *err) {
    return disk_spool_new(&r->spool, r->bytes, r->lines, err);
}

bool disk_recorder_holds(const struct disk_recorder *r) {
    return r->spool && disk_spool_holds(r->spool);
}

static void take_code(struct disk_recorder *r, int code) {
    r->code = r->code ? r->code : code;
    r->full = r->full || r->code;
}

void disk_recorder_flush(struct disk_recorder *r) {
    if (!r->spool)
        return;
    disk_spool_give(r->spool);
    take_code(r, disk_spool_code(r->spool));
}

unsigned char *disk_recorder_room(struct disk_recorder *r, size_t size) {
    return r->spool ? disk_spool_room(r->spool, size) : NULL;
}

static void put_bytes(struct disk_recorder *r, const unsigned char *bytes, size_t size) {
    if (r->spool)
        disk_spool_put(r->spool, bytes, size);
    else
        append(r, r->bytes, bytes, size);
}

static void put_text(struct disk_recorder *r) {
    if (r->spool)
        disk_spool_line(r->spool, &r->line);
    else
        append(r, r->lines, r->line.data, r->line.len);
}

int disk_recorder_open(struct disk_recorder **ret, const char *path, uint64_t max_bytes,
                       struct err *err) {
    struct disk_recorder *r = mem_new(struct disk_recorder);
    char *bytes = mem_printf("%s.bytes", path);
    r->path = mem_strdup(path);
    r->max = max_bytes ? max_bytes : bytes_default;
    r->lines = r->bytes = -1;
    int code = create(bytes, &r->bytes, err);
    code = code ? code : create(path, &r->lines, err);
    free(bytes);
    if (code) {
        disk_recorder_close(r, NULL);
        return code;
    }
    buf_printf(&r->line, "{\"record\": %d}\n", VERSION);
    append(r, r->lines, r->line.data, r->line.len);
    *ret = r;
    return 0;
}

static bool is_utf8(const char *s) {
    for (size_t left = strlen(s); left;) {
        int n = utf8_read(s, left, NULL);
        if (n <= 0)
            return false;
        s += n;
        left -= (size_t)n;
    }
    return true;
}

static void put_name(struct json_writer *w, const char *key, const char *key64, const char *name) {
    BUF_FINI struct buf coded = {0};
    if (name && is_utf8(name)) {
        json_put_string(w, key, name);
    } else if (name) {
        base64_put(&coded, name, strlen(name));
        json_put_string(w, key64, buf_str(&coded));
    }
}

static void put_number(struct json_writer *w, const char *key, uint64_t n) {
    if (n)
        json_put_i64(w, key, (int64_t)n);
}

static void put_line(struct disk_recorder *r, const struct disk_operation *o) {
    struct json_writer w = {.out = &r->line};
    buf_clear(&r->line);
    json_object(&w, NULL);
    json_put_string(&w, "deed", disk_deed_names[o->deed]);
    if (o->directory)
        json_put_bool(&w, "directory", true);
    put_number(&w, "file", o->file);
    put_name(&w, "path", "path64", o->path);
    put_name(&w, "to", "to64", o->to);
    put_number(&w, "mode", o->mode);
    put_number(&w, "offset", o->offset);
    put_number(&w, "size", o->size);
    if (has_bytes(o))
        json_put_i64(&w, "at", (int64_t)r->at);
    json_put_i64(&w, "t_ns", o->t_ns);
    put_number(&w, "pid", (uint64_t)o->pid);
    if (o->rank >= 0)
        json_put_i64(&w, "rank", o->rank);
    if (o->node && *o->node)
        json_put_string(&w, "node", o->node);
    json_end_object(&w);
    buf_putc(&r->line, '\n');
}

/* The last line of such a record. */
static void put_full(struct disk_recorder *r) {
    buf_clear(&r->line);
    buf_printf(&r->line, "{\"full\": %llu}\n", (unsigned long long)r->max);
    put_text(r);
    r->full = true;
}

void disk_writer_in(int fd, struct disk_writer *ret) {
    static const char of_rank[] = "RANK=", of_node[] = "RANKQUAKE_NODE=";
    BUF_FINI struct buf environment = {0};
    int64_t rank = -1;
    *ret = (struct disk_writer){.rank = -1};
    if (fd < 0 || file_read_fd(fd, 4 << 20, &environment, NULL) != 0)
        return;
    const char *p = buf_str(&environment), *end = p + environment.len;
    for (; p < end; p += strlen(p) + 1) {
        if (str_starts(p, of_rank) && str_to_i64(p + strlen(of_rank), 0, INT32_MAX, &rank))
            ret->rank = (int)rank;
        if (str_starts(p, of_node))
            str_copy(ret->node, sizeof(ret->node), p + strlen(of_node));
    }
}

void disk_recorder_add(struct disk_recorder *r, const struct disk_operation *o) {
    uint64_t size = has_bytes(o) ? o->size : 0;
    if (r->full)
        return;
    if (size > r->max - r->at) {
        put_full(r);
        return;
    }
    put_line(r, o);
    if (size)
        put_bytes(r, o->bytes, size);
    put_text(r);
    r->at += size;
}

bool disk_recorder_full(const struct disk_recorder *r) {
    return r->full;
}

int disk_recorder_close(struct disk_recorder *r, struct err *err) {
    int code = 0;
    if (!r)
        return 0;
    if (r->spool)
        take_code(r, disk_spool_drain(r->spool));
    disk_spool_free(r->spool);
    if (r->code)
        code = err_set(err, r->code, "write %s, the record of a disk", r->path);
    else if (r->full)
        code = err_say(err, -EFBIG,
                       "%s: more than %llu bytes were written to the disk, and what came after "
                       "them is not in its record",
                       r->path, (unsigned long long)r->max);
    file_close(&r->lines);
    file_close(&r->bytes);
    buf_fini(&r->line);
    free(r->path);
    free(r);
    return code;
}

/* ---- reading ---- */

struct reading {
    const char *path;
    struct arena *arena, *line; /* of what is returned, of one line */
    const unsigned char *bytes;
    uint64_t bytes_n;
    size_t number; /* of the line */
    struct disk_operation *v;
    size_t n, room;
    uint64_t written, full;
    struct err *err;
};

static int wrong(const struct reading *r, const char *what) {
    return err_say(r->err, -EINVAL, "%s, line %zu: %s", r->path, r->number, what);
}

static struct disk_operation *one_more(struct reading *r) {
    if (r->n == r->room) {
        struct disk_operation *more = arena_array(r->arena, struct disk_operation, 2 * r->n + 64);
        if (r->n)
            memcpy(more, r->v, r->n * sizeof(*more));
        r->v = more;
        r->room = 2 * r->n + 64;
    }
    return &r->v[r->n++];
}

/* "" is the directory; else no part of it is empty, "." or "..". */
static bool stays_inside(const char *path) {
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n;
        if (*p && !*++p)
            return false;
    }
    return true;
}

/* A text without a NUL; absent: not there, also as base64. Sets *ret to NULL when it is wrong. */
static void read_name(const struct reading *r, const struct json *j, const char *key,
                      const char *key64, const char *absent, const char **ret) {
    const struct json *plain = json_get(j, key), *coded = json_get(j, key64);
    const struct json *text = plain ? plain : coded;
    BUF_FINI struct buf name = {0};
    *ret = text ? NULL : absent;
    if (!text || text->type != JSON_STRING)
        return;
    if (plain)
        buf_put(&name, plain->string, plain->length);
    else if (!base64_take(&name, coded->string, coded->length))
        return;
    if (!memchr(buf_str(&name), 0, name.len))
        *ret = arena_strdup(r->arena, buf_str(&name));
}

static bool read_number(const struct json *j, const char *key, int64_t max, int64_t *ret) {
    const struct json *n = json_get(j, key);
    if (!n)
        return true;
    if (n->type != JSON_INT || n->integer < 0 || n->integer > max)
        return false;
    *ret = n->integer;
    return true;
}

static int read_deed(struct reading *r, const struct json *j, struct disk_operation *o) {
    const char *name = json_get_string(j, "deed", "");
    for (int d = 0; d < DISK_DEEDS_N; d++)
        if (strcmp(name, disk_deed_names[d]) == 0) {
            o->deed = (enum disk_deed)d;
            return 0;
        }
    return err_say(r->err, -EINVAL, "%s, line %zu: \"%s\" is no deed", r->path, r->number, name);
}

static int read_names(struct reading *r, const struct json *j, struct disk_operation *o) {
    bool two = o->deed == DISK_LINK || o->deed == DISK_RENAME || o->deed == DISK_EXCHANGE;
    read_name(r, j, "path", "path64", "", &o->path);
    if (!o->path)
        return wrong(r, "its path is no text");
    if (o->deed != DISK_MARK && !stays_inside(o->path))
        return wrong(r, "its path leads out of the directory");
    if (json_get(j, "to") || json_get(j, "to64") || two) {
        read_name(r, j, "to", "to64", NULL, &o->to);
        if (!o->to)
            return wrong(r, "its \"to\" is no text");
    }
    if (two && !stays_inside(o->to))
        return wrong(r, "its \"to\" leads out of the directory");
    if (o->deed == DISK_SYMLINK && !o->to)
        return wrong(r, "it does not say what the link says");
    o->node = arena_strdup(r->arena, json_get_string(j, "node", ""));
    return 0;
}

static int read_numbers(struct reading *r, const struct json *j, struct disk_operation *o) {
    int64_t file = 0, mode = 0, offset = 0, size = 0, t_ns = 0, pid = 0, rank = -1;
    if (!read_number(j, "file", INT64_MAX, &file) || !read_number(j, "mode", 07777, &mode) ||
        !read_number(j, "offset", INT64_MAX, &offset) ||
        !read_number(j, "size", INT64_MAX, &size) || !read_number(j, "t_ns", INT64_MAX, &t_ns) ||
        !read_number(j, "pid", INT_MAX, &pid) || !read_number(j, "rank", INT_MAX, &rank))
        return wrong(r, "a number of it is none, or is out of bounds");
    if (size > INT64_MAX - offset)
        return wrong(r, "it ends behind every file");
    o->file = (uint64_t)file;
    o->mode = (unsigned)mode;
    o->offset = (uint64_t)offset;
    o->size = (uint64_t)size;
    o->t_ns = t_ns;
    o->pid = (int)pid;
    o->rank = (int)rank;
    return 0;
}

static int read_bytes(struct reading *r, const struct json *j, struct disk_operation *o) {
    int64_t at = -1;
    if (!has_bytes(o))
        return 0;
    if (!read_number(j, "at", INT64_MAX, &at) || at < 0)
        return wrong(r, "it does not say where its bytes are");
    if (o->size > r->bytes_n || (uint64_t)at > r->bytes_n - o->size)
        return err_say(r->err, -EINVAL, "%s, line %zu: its bytes are not in %s.bytes", r->path,
                       r->number, r->path);
    o->bytes = r->bytes + at;
    if (o->deed == DISK_WRITE)
        r->written += o->size;
    return 0;
}

static int read_full(struct reading *r, const struct json *j) {
    int64_t max = 0;
    if (!read_number(j, "full", INT64_MAX, &max) || max == 0)
        return wrong(r, "a number of it is none, or is out of bounds");
    r->full = (uint64_t)max;
    return 0;
}

static int read_operation(struct reading *r, const struct json *j) {
    struct disk_operation o = {.directory = json_get_bool(j, "directory", false)};
    if (json_get(j, "full"))
        return read_full(r, j);
    int code = read_deed(r, j, &o);
    code = code ? code : read_names(r, j, &o);
    code = code ? code : read_numbers(r, j, &o);
    code = code ? code : read_bytes(r, j, &o);
    if (code == 0)
        *one_more(r) = o;
    return code;
}

static int read_line(struct reading *r, const char *line, size_t len) {
    r->number++;
    arena_clear(r->line);
    const struct json *j = json_parse(r->line, line, len, r->err);
    if (!j)
        return err_wrap(r->err, "%s, line %zu", r->path, r->number), -EINVAL;
    if (j->type != JSON_OBJECT)
        return wrong(r, "it is no object");
    if (r->number > 1)
        return read_operation(r, j);
    if (json_get_i64(j, "record", 0) == VERSION)
        return 0;
    return wrong(r, "a record of this version begins with {\"record\": 1}");
}

static int map_bytes(struct reading *r) {
    char *path = mem_printf("%s.bytes", r->path);
    struct stat st = {0};
    FILE_CLOSE int fd = file_open_plain(path, r->err);
    int code = fd < 0 ? fd : fstat(fd, &st) != 0 ? err_set(r->err, -errno, "stat %s", path) : 0;
    r->bytes_n = (uint64_t)st.st_size;
    if (code == 0 && st.st_size) {
        void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        code = at == MAP_FAILED ? err_set(r->err, -errno, "map %s", path) : 0;
        r->bytes = at;
    }
    free(path);
    return code;
}

static int read_lines(struct reading *r, const struct buf *lines) {
    const char *p = buf_str(lines), *end = p + lines->len;
    int code = 0;
    for (const char *nl; code == 0 && (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1)
        code = read_line(r, p, (size_t)(nl - p));
    if (code == 0 && r->number == 0)
        code = err_say(r->err, -EINVAL, "%s is no record of a disk: not one line of it is whole",
                       r->path);
    return code;
}

int disk_record_load(const char *path, struct arena *arena, struct disk_record *ret,
                     struct err *err) {
    BUF_FINI struct buf lines = {0};
    ARENA_FINI struct arena line = {0};
    struct reading r = {.path = path, .arena = arena, .line = &line, .err = err};
    /* The lines first: of what they tell the bytes are there by then. */
    int code = file_read_plain(path, LINES_MAX, &lines, err);
    code = code ? code : map_bytes(&r);
    code = code ? code : read_lines(&r, &lines);
    if (code == 0)
        *ret = (struct disk_record){r.v, r.n, r.written, r.full};
    return code;
}

int disk_record_by_time(const void *a, const void *b) {
    const struct disk_operation *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}
