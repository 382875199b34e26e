#include "base/sys/opens.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDERS_MAX = 30000, NAMES_MAX = 1 << 20 };

/* ---- the tree as it is ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static unsigned char type_of(int dir, const struct dirent *e) {
    struct stat st;
    if (e->d_type != DT_UNKNOWN)
        return e->d_type;
    if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return DT_UNKNOWN;
    return S_ISDIR(st.st_mode) ? DT_DIR : S_ISLNK(st.st_mode) ? DT_LNK : DT_REG;
}

static char *path_below(const char *folder, const char *name) {
    return str_eq(folder, ".") ? mem_strdup(name) : mem_printf("%s/%s", folder, name);
}

static bool is_without(const char *top, const char *path, const char *const *without) {
    char *whole = mem_printf("%s/%s", str_eq(top, "/") ? "" : top, path);
    bool is = str_eq(str_base(path), ".git") || str_in(whole, without);
    free(whole);
    return is;
}

static void add_folder(struct opens *o, char *path) {
    mem_push(o->v, o->n) = (struct opens_folder){.path = path};
}

/* One that is gone, or may not be read, has nothing in it that could be. */
static void read_folder(struct opens *o, const char *top, size_t i, const char *const *without) {
    struct texts names = {0};
    char *whole = mem_printf("%s/%s", top, o->v[i].path);
    FILE_CLOSE_DIR DIR *d = opendir(whole);
    free(whole);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
            continue;
        texts_add(&names, "%s", e->d_name);
        unsigned char type = type_of(dirfd(d), e);
        char *path = path_below(o->v[i].path, e->d_name);
        if (type == DT_LNK)
            texts_add(&o->links, "%s", path);
        if (type == DT_DIR && !is_without(top, path, without))
            add_folder(o, path);
        else
            free(path);
    }
    if (names.n)
        qsort(names.v, names.n, sizeof(*names.v), by_name);
    o->names += names.n;
    o->v[i].seen = mem_array(unsigned char, names.n + 1);
    o->v[i].names = names;
}

static int read_tree(struct opens *o, const char *top, const char *const *without,
                     struct err *err) {
    add_folder(o, mem_strdup("."));
    for (size_t i = 0; i < o->n; i++) {
        if (o->n > FOLDERS_MAX || o->names > NAMES_MAX)
            return err_say(err, -E2BIG,
                           "%s holds more than %d folders or %d files, too many to be watched", top,
                           FOLDERS_MAX, NAMES_MAX);
        read_folder(o, top, i, without);
    }
    return 0;
}

/* ---- the watch ---- */

static int watch_folder(struct opens *o, const char *top, size_t i, struct err *err) {
    char *whole = mem_printf("%s/%s", top, o->v[i].path);
    int wd = inotify_add_watch(o->fd, whole, IN_OPEN | IN_MODIFY | IN_ONLYDIR | IN_DONT_FOLLOW);
    int code = wd < 0 ? -errno : 0;
    free(whole);
    if (code == -ENOSPC)
        return err_say(err, code,
                       "the %zu folders of %s are more than one user may watch here; raise "
                       "fs.inotify.max_user_watches",
                       o->n, top);
    if (code) /* gone, or not ours to read: nor the job's */
        return code == -ENOENT || code == -ENOTDIR || code == -EACCES
                   ? 0
                   : err_set(err, code, "watch %s/%s", top, o->v[i].path);
    while (o->at_n <= (size_t)wd)
        mem_push(o->at, o->at_n) = 0;
    if (o->at[wd])
        return err_say(err, -EXDEV,
                       "%s/%s and %s/%s are one folder, so what is read there has no "
                       "one name",
                       top, o->v[o->at[wd] - 1].path, top, o->v[i].path);
    o->at[wd] = (int)i + 1;
    return 0;
}

int opens_begin(struct opens *o, const char *top, const char *const *without, struct err *err) {
    *o = (struct opens){.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
    if (o->fd < 0)
        return err_set(err, -errno, "watch a folder (fs.inotify.max_user_instances may be raised)");
    int code = read_tree(o, top, without, err);
    for (size_t i = 0; i < o->n && code == 0; i++)
        code = watch_folder(o, top, i, err);
    return code;
}

static void take_one(struct opens *o, const struct inotify_event *e) {
    o->lost |= (e->mask & IN_Q_OVERFLOW) != 0;
    if (e->wd < 0 || (size_t)e->wd >= o->at_n || !o->at[e->wd])
        return;
    struct opens_folder *f = &o->v[o->at[e->wd] - 1];
    if (e->mask & IN_ISDIR) {
        f->own |= !e->len && e->mask & IN_OPEN ? OPENS_READ : 0;
        return;
    }
    const char *name = e->name;
    char **at = e->len && f->names.n
                    ? bsearch(&name, f->names.v, f->names.n, sizeof(*f->names.v), by_name)
                    : NULL;
    if (at)
        f->seen[at - f->names.v] |= e->mask & IN_MODIFY ? OPENS_WRITTEN : OPENS_READ;
}

void opens_take(struct opens *o) {
    char room[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n;
    while (o->fd >= 0 && (n = read(o->fd, room, sizeof(room))) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *e = (const void *)(room + at);
            take_one(o, e);
            at += (ssize_t)(sizeof(*e) + e->len);
        }
}

void opens_fini(struct opens *o) {
    for (size_t i = 0; i < o->n; i++) {
        free(o->v[i].path);
        free(o->v[i].seen);
        texts_fini(&o->v[i].names);
    }
    free(o->v);
    free(o->at);
    texts_fini(&o->links);
    file_close(&o->fd);
    *o = (struct opens){.fd = -1};
}
