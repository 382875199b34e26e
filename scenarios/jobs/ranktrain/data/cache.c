#include "scenarios/jobs/ranktrain/data/cache.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns the open directory, made if need be, or -1: do without. */
static int open_directory(void) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char path[PATH_MAX];
    int n = xdg && *xdg == '/'     ? snprintf(path, sizeof(path), "%s/rankquake", xdg)
            : home && *home == '/' ? snprintf(path, sizeof(path), "%s/.cache/rankquake", home)
                                   : -1;
    if (n < 0 || n >= (int)sizeof(path))
        return -1;
    file_make_dirs(path, 0755, NULL);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int make_in_memory(cache_make_fn *make, const void *arg, struct err *err) {
    int fd = memfd_create("rankquake-data", MFD_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "memfd_create");
    int r = make(fd, arg, err);
    if (r < 0)
        file_close(&fd);
    return r < 0 ? r : fd;
}

/* Makes the file unless somebody has meanwhile. Returns a descriptor; -EROFS when the directory
 * cannot hold it and nothing else is wrong. Who holds the lock writes over what an interrupted
 * process has left. */
static int make_in(int dir, const char *name, bool locked, cache_make_fn *make, const void *arg,
                   struct err *err) {
    char temporary[NAME_MAX];
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    snprintf(temporary, sizeof(temporary), ".%s.%ld", name, locked ? 0 : (long)getpid());
    fd = openat(dir, temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return -EROFS;
    struct err why = {0};
    int r = make(fd, arg, &why);
    if (r == 0 && (fsync(fd) < 0 || renameat(dir, temporary, dir, name) < 0))
        r = -EROFS;
    if (r == 0)
        return fd;
    close(fd);
    unlinkat(dir, temporary, 0);
    if (r == -ENOSPC || r == -EDQUOT || r == -EFBIG || r == -EROFS)
        return -EROFS;
    if (err)
        *err = why;
    return r;
}

int cache_open(const char *name, cache_make_fn *make, const void *arg, struct err *err) {
    FILE_CLOSE int dir = open_directory();
    if (dir < 0)
        return make_in_memory(make, arg, err);
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        /* Without a lock (a file system that has none) the file is made twice, no more. */
        FILE_CLOSE int lock = openat(dir, ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        bool locked = lock >= 0 && flock(lock, LOCK_EX) == 0;
        fd = make_in(dir, name, locked, make, arg, err);
    }
    return fd == -EROFS ? make_in_memory(make, arg, err) : fd;
}
