#include "harness/trend/logbook.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRY_BYTES_MAX = 1 << 22 };

/* ---- reading ---- */

static void take(struct logbook *l, const char *text, size_t len, const char *where) {
    struct err err = {0};
    struct trend_entry *e = arena_new(&l->arena, struct trend_entry);
    if (trend_entry_parse(e, &l->arena, text, len, &err) < 0)
        texts_add(&l->damaged, "%s %s: it is left out", where, err.msg);
    else
        mem_push(l->v, l->n) = e;
}

static void take_lines(struct logbook *l, const char *path, const struct buf *text) {
    size_t line = 1;
    for (size_t at = 0, len; at < text->len; at += len + 1, line++) {
        const char *begin = text->data + at, *end = memchr(begin, '\n', text->len - at);
        char where[4200];
        len = end ? (size_t)(end - begin) : text->len - at;
        snprintf(where, sizeof(where), "%s:%zu", path, line);
        if (!len)
            continue;
        if (!end && begin[len - 1] != '}') /* a whole line whose end alone is missing is whole */
            texts_add(&l->damaged, "%s is cut off after %zu bytes: it is left out", where, len);
        else
            take(l, begin, len, where);
    }
}

static int by_identity(const void *a, const void *b) {
    const struct trend_entry *x = *(struct trend_entry *const *)a;
    const struct trend_entry *y = *(struct trend_entry *const *)b;
    return strcmp(x->id, y->id);
}

static int by_time(const void *a, const void *b) {
    const struct trend_entry *x = *(struct trend_entry *const *)a;
    const struct trend_entry *y = *(struct trend_entry *const *)b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return strcmp(x->id, y->id);
}

static void settle(struct logbook *l) {
    size_t n = 0;
    if (l->n)
        qsort(l->v, l->n, sizeof(struct trend_entry *), by_identity);
    for (size_t i = 0; i < l->n; i++)
        if (!n || !str_eq(l->v[n - 1]->id, l->v[i]->id))
            l->v[n++] = l->v[i];
    l->n = n;
    if (n)
        qsort(l->v, n, sizeof(struct trend_entry *), by_time);
}

static int is_entry(const struct dirent *e) {
    return folder_is_shown(e) && str_ends(e->d_name, ".json");
}

static int read_directory(struct logbook *l, const char *path, struct err *err) {
    TEXTS_FINI struct texts names = {0};
    struct folder f;
    int r = folder_open(&f, path, err);
    if (r < 0)
        return r;
    r = folder_list(&f, ".", is_entry, &names, err);
    for (size_t i = 0; i < names.n && r >= 0; i++) {
        BUF_FINI struct buf text = {0};
        struct err why = {0};
        char where[4600];
        snprintf(where, sizeof(where), "%s/%s", path, names.v[i]);
        if (folder_read(&f, names.v[i], ENTRY_BYTES_MAX, &text, &why) < 0)
            texts_add(&l->damaged, "%s: it is left out", why.msg);
        else
            take(l, buf_str(&text), text.len, where);
    }
    folder_close(&f);
    return r < 0 ? r : 0;
}

static bool is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int logbook_read(struct logbook *ret, const char *path, struct err *err) {
    BUF_FINI struct buf text = {0};
    *ret = (struct logbook){0};
    int r = is_directory(path) ? read_directory(ret, path, err)
                               : file_read_plain(path, LOGBOOK_BYTES_MAX, &text, err);
    if (r < 0) {
        logbook_fini(ret);
        return r;
    }
    take_lines(ret, path, &text);
    settle(ret);
    return 0;
}

void logbook_fini(struct logbook *l) {
    texts_fini(&l->damaged);
    free(l->v);
    arena_fini(&l->arena);
    *l = (struct logbook){0};
}

/* ---- adding to a file ---- */

static bool has(const struct logbook *l, const char *id) {
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i]->id, id))
            return true;
    return false;
}

/* All of it, or the file is as it was. */
static int append(int fd, const char *path, const struct buf *text, off_t size, struct err *err) {
    int r = file_write_all(fd, text->data, text->len, err);
    if (r == 0 && fsync(fd) < 0)
        r = err_set(err, -errno, "fsync");
    if (r < 0 && ftruncate(fd, size) < 0)
        return err_set(err, -errno, "%s could not be written, and not be cut back to %lld bytes",
                       path, (long long)size);
    return r < 0 ? err_wrap(err, "%s", path) : 0;
}

static int add_locked(int fd, const char *path, const struct trend_entry *v, size_t n,
                      size_t *ret_added, struct err *err) {
    BUF_FINI struct buf old = {0}, more = {0};
    struct logbook l = {0};
    size_t added = 0;
    int r = file_read_fd(fd, LOGBOOK_BYTES_MAX, &old, err);
    if (r < 0)
        return err_wrap(err, "%s", path);
    take_lines(&l, path, &old);
    if (old.len && old.data[old.len - 1] != '\n')
        buf_putc(&more, '\n');
    for (size_t i = 0; i < n; i++) {
        if (has(&l, v[i].id))
            continue;
        trend_entry_put(&v[i], &more);
        buf_putc(&more, '\n');
        added++;
    }
    logbook_fini(&l);
    if (added)
        r = append(fd, path, &more, (off_t)old.len, err);
    if (r >= 0)
        *ret_added = added;
    return r < 0 ? r : 0;
}

static int add_to_file(const char *path, const struct trend_entry *v, size_t n, size_t *ret_added,
                       struct err *err) {
    FILE_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    struct stat st;
    if (fd < 0)
        return err_set(err, -errno, "open %s", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_say(err, -EINVAL, "%s is no plain file: name one, or a directory", path);
    if (flock(fd, LOCK_EX) < 0)
        return err_set(err, -errno, "lock %s", path);
    return add_locked(fd, path, v, n, ret_added, err);
}

/* ---- adding to a directory ---- */

/* By time, so that a listing has the order of the runs; the same run has the same name. */
static int add_to_directory(const char *path, const struct trend_entry *v, size_t n,
                            size_t *ret_added, struct err *err) {
    struct folder f;
    size_t added = 0;
    int r = file_make_dirs(path, 0777, err);
    if (r == 0)
        r = folder_open(&f, path, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n && r == 0; i++) {
        BUF_FINI struct buf text = {0};
        char name[100];
        snprintf(name, sizeof(name), "%020" PRId64 "-%.16s.json", v[i].time_ns, v[i].id);
        if (folder_has(&f, name))
            continue;
        trend_entry_put(&v[i], &text);
        buf_putc(&text, '\n');
        r = folder_write_synced(&f, name, text.data, text.len, err);
        added += r == 0;
    }
    folder_close(&f);
    *ret_added = added;
    return r;
}

int logbook_add(const char *path, const struct trend_entry *v, size_t n, size_t *ret_added,
                struct err *err) {
    bool directory = is_directory(path) || str_ends(path, "/");
    return (directory ? add_to_directory : add_to_file)(path, v, n, ret_added, err);
}
