#include "agent/sys/mount.h"

#include "agent/base/str.h"
#include "agent/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int mount_make_private(struct err *err) {
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return err_set(err, -errno, "take the mounts out of the host's sight");
    return 0;
}

int mount_proc(struct err *err) {
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
        return 0;
    if (errno == EPERM)
        return err_say(err, -EPERM,
                       "mount /proc: refused, as in a container that hides parts of /proc; start "
                       "it with --security-opt systempaths=unconfined or --privileged");
    return err_set(err, -errno, "mount /proc");
}

int mount_bind(const char *source, const char *path, struct err *err) {
    if (mount(source, path, NULL, MS_BIND | MS_REC, NULL) != 0)
        return err_set(err, -errno, "show %s at %s", source, path);
    return 0;
}

/* Makes the place in the fresh tmpfs on which something is bound: a directory, or a file. */
static int make_place(const char *path, bool directory, struct err *err) {
    char parent[PATH_MAX];
    if (!str_copy(parent, sizeof(parent), path))
        return err_set(err, -ENAMETOOLONG, "%s", path);
    if (directory)
        return file_make_dirs(path, 0755, err);
    *strrchr(parent, '/') = 0;
    int r = file_make_dirs(parent, 0755, err);
    return r ? r : file_write(path, "", 0, err);
}

static int bring_back(int old, const char *root, const char *path, struct err *err) {
    struct stat st;
    char source[PATH_MAX];
    const char *below = path + strlen(root) + 1;
    if (fstatat(old, below, &st, 0) != 0)
        return 0;
    if (snprintf(source, sizeof(source), "/proc/self/fd/%d/%s", old, below) >= (int)sizeof(source))
        return err_set(err, -ENAMETOOLONG, "%s", path);
    int r = make_place(path, S_ISDIR(st.st_mode), err);
    return r ? r : mount_bind(source, path, err);
}

static bool is_below(const char *path, const char *root) {
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && path[n] == '/' && path[n + 1];
}

/* Named twice, or below another path that is kept and comes back with it. */
static bool is_redundant(const char *const *keep, size_t keep_n, size_t at, const char *root) {
    for (size_t i = 0; i < keep_n; i++) {
        if (i < at && strcmp(keep[at], keep[i]) == 0)
            return true;
        if (is_below(keep[i], root) && is_below(keep[at], keep[i]))
            return true;
    }
    return false;
}

int mount_cover(const char *path, mode_t mode, const char *const *keep, size_t keep_n,
                struct err *err) {
    char options[32];
    /* The old directory stays reachable through this descriptor after it has been covered. */
    FILE_CLOSE int old = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (old < 0)
        return errno == ENOENT ? 0 : err_set(err, -errno, "open %s", path);
    snprintf(options, sizeof(options), "mode=%o", (unsigned)mode);
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
        return err_set(err, -errno, "mount a tmpfs on %s", path);
    for (size_t i = 0; i < keep_n; i++) {
        if (!is_below(keep[i], path) || is_redundant(keep, keep_n, i, path))
            continue;
        int r = bring_back(old, path, keep[i], err);
        if (r)
            return r;
    }
    return 0;
}
