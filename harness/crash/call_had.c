/* What a directory held before its writers began. */
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/crash/call_scene.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void tell_had(const struct call_scene *s, struct disk_operation o, const struct stat *st) {
    o.deed = DISK_HAD;
    o.directory = S_ISDIR(st->st_mode);
    o.mode = st->st_mode & 07777;
    o.file = call_scene_number(s, st);
    o.to = o.to ? o.to : "";
    o.rank = -1;
    o.node = "";
    o.t_ns = clock_monotonic_ns();
    disk_recorder_add(s->r->to, &o);
}

static void tell_dir(const struct call_scene *s, int dir, const char *path);

static void tell_one(const struct call_scene *s, int dir, const char *name, const char *path) {
    struct stat st;
    char link[PATH_MAX];
    struct buf *b = &s->r->bytes;
    struct disk_operation o = {.path = path};
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    FILE_CLOSE int fd = S_ISLNK(st.st_mode)
                            ? -1
                            : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (S_ISDIR(st.st_mode)) {
        tell_had(s, o, &st);
        tell_dir(s, fd, path);
    } else if (S_ISREG(st.st_mode)) {
        buf_clear(b);
        if (fd < 0 || file_read_fd(fd, (size_t)st.st_size + 1, b, NULL) != 0)
            return;
        o.size = b->len;
        o.bytes = (const unsigned char *)b->data;
        tell_had(s, o, &st);
    } else if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(dir, name, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = '\0';
        o.to = link;
        tell_had(s, o, &st);
    }
}

static void tell_dir(const struct call_scene *s, int dir, const char *path) {
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FILE_CLOSE_DIR DIR *d = own < 0 ? NULL : fdopendir(own);
    const struct dirent *e;
    char below[PATH_MAX];
    while (d && (e = readdir(d)))
        if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, "..") &&
            snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "", e->d_name) < PATH_MAX)
            tell_one(s, own, e->d_name, below);
}

void call_record_begin(struct call_record *r) {
    const struct watched_call none = {0};
    tell_dir(&(struct call_scene){r, &none}, r->dir, "");
}
