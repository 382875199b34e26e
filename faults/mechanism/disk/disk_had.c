/* What a disk holds before anybody has done anything to it, told to the record. */
#include "faults/mechanism/disk/disk_server.h"

#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int tell_folder(struct disk *d, struct disk_file *f, int fd, struct err *err);

static void tell(struct disk *d, struct disk_operation o, const struct disk_file *f,
                 const struct stat *st, const char *path) {
    o.deed = DISK_HAD;
    o.file = f->number;
    o.path = path;
    o.mode = st->st_mode & 07777;
    o.directory = f->directory;
    o.t_ns = clock_monotonic_ns();
    o.rank = -1;
    disk_recorder_add(d->recorder, &o);
}

static int tell_file(struct disk *d, const struct disk_file *f, const struct stat *st, int at,
                     const char *name, const char *path, struct err *err) {
    struct disk_operation o = {.size = (uint64_t)st->st_size};
    FILE_CLOSE int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "read %s, which is on the disk", path);
    void *bytes = o.size ? mmap(NULL, o.size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (bytes == MAP_FAILED)
        return err_set(err, -errno, "read %s, which is on the disk", path);
    o.bytes = bytes;
    tell(d, o, f, st, path);
    if (bytes)
        munmap(bytes, o.size);
    return 0;
}

static int tell_link(struct disk *d, const struct disk_file *f, const struct stat *st, int at,
                     const char *name, const char *path, struct err *err) {
    char to[PATH_MAX];
    ssize_t n = readlinkat(at, name, to, sizeof(to) - 1);
    if (n < 0)
        return err_set(err, -errno, "read the link %s, which is on the disk", path);
    to[n] = '\0';
    tell(d, (struct disk_operation){.to = to}, f, st, path);
    return 0;
}

/* A pipe or a socket is none of what is recorded. */
static int tell_entry(struct disk *d, struct disk_file *parent, int at, const char *name,
                      struct err *err) {
    BUF_FINI struct buf path = {0};
    struct stat st;
    disk_tree_entry(&d->tree, parent->number, name, &path);
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return err_set(err, -errno, "look at %s, which is on the disk", buf_str(&path));
    struct disk_file *f = disk_tree_at(&d->tree, &st);
    bool again = f;
    f = f ? f : disk_tree_add(&d->tree, &st);
    disk_file_add_name(f, parent->number, name);
    if (S_ISREG(st.st_mode) && !again)
        return tell_file(d, f, &st, at, name, buf_str(&path), err);
    if (S_ISLNK(st.st_mode))
        return tell_link(d, f, &st, at, name, buf_str(&path), err);
    if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        tell(d, (struct disk_operation){0}, f, &st, buf_str(&path));
    if (!S_ISDIR(st.st_mode))
        return 0;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_set(err, -errno, "open %s, which is on the disk", buf_str(&path))
                  : tell_folder(d, f, fd, err);
}

/* Takes the descriptor. In the order of names: so that two records of one directory are alike. */
static int tell_folder(struct disk *d, struct disk_file *f, int fd, struct err *err) {
    struct dirent **names = NULL;
    int r = 0, n = scandirat(fd, ".", &names, NULL, alphasort);
    if (n < 0)
        r = err_set(err, -errno, "list a directory of the disk");
    for (int i = 0; i < n; i++) {
        if (r == 0 && strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0)
            r = tell_entry(d, f, fd, names[i]->d_name, err);
        free(names[i]);
    }
    free(names);
    close(fd);
    return r;
}

int disk_tell_all(struct disk *d, struct err *err) {
    struct stat st;
    struct disk_file *root = disk_tree_find(&d->tree, DISK_ROOT);
    int fd = openat(d->backing, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return err_set(err, -errno, "list the directory of a disk");
    tell(d, (struct disk_operation){0}, root, &st, "");
    return tell_folder(d, root, fd, err);
}
