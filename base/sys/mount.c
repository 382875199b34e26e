#include "base/sys/mount.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
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

/* A sysfs shows the network it was mounted in, for ever. */
int mount_sys_network(const char *at, struct err *err) {
    static const char *const parts[] = {"devices/virtual/net", "class/net"};
    char from[PATH_MAX], to[64];
    int r = file_make_dirs(at, 0700, err);
    if (r)
        return r;
    if (mount("sysfs", at, "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) != 0) {
        r = err_set(err, -errno, "mount a sysfs at %s", at);
        rmdir(at);
        return r;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && r == 0; i++) {
        snprintf(from, sizeof(from), "%s/%s", at, parts[i]);
        snprintf(to, sizeof(to), "/sys/%s", parts[i]);
        r = mount_bind(from, to, err);
    }
    umount2(at, MNT_DETACH);
    rmdir(at);
    return r;
}

int mount_place(const char *path, bool directory, struct err *err) {
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
    int r = mount_place(path, S_ISDIR(st.st_mode), err);
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

/* ---- to be read only ---- */

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE         1
#define OPEN_TREE_CLOEXEC       O_CLOEXEC
#define MOVE_MOUNT_F_EMPTY_PATH 4
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

enum { MOUNTS_MAX = 64 << 20, KEPT_MAX = 16 };

/* "\\040" is a blank. */
static void unescape(char *s) {
    char *to = s;
    for (unsigned c; *s; s++) {
        if (*s == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
            *to++ = (char)c;
            s += 3;
        } else {
            *to++ = *s;
        }
    }
    *to = 0;
}

/* A remount that leaves one of these out would take it off, which is refused where the host's
 * administrator has set it. */
static unsigned long flags_of(const char *options) {
    static const struct {
        const char *name;
        unsigned long flag;
    } names[] = {{"nosuid", MS_NOSUID},   {"nodev", MS_NODEV},           {"noexec", MS_NOEXEC},
                 {"noatime", MS_NOATIME}, {"nodiratime", MS_NODIRATIME}, {"relatime", MS_RELATIME}};
    unsigned long flags = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t n = strlen(names[i].name);
        for (const char *at = options; (at = strstr(at, names[i].name)); at += n)
            if ((at == options || at[-1] == ',') && (!at[n] || at[n] == ','))
                flags |= names[i].flag;
    }
    return flags;
}

/* What lies hidden below another mount has no path, and needs none. */
static int remount(const char *at, const char *options, struct err *err) {
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | flags_of(options);
    if (mount(NULL, at, NULL, flags, NULL) == 0 || errno == ENOENT || errno == EINVAL ||
        errno == ENOTDIR)
        return 0;
    return err_set(err, -errno, "let %s only be read", at);
}

/* mount_setattr would do it in one call, on Linux 5.12. */
static int remount_all(const char *path, struct err *err) {
    BUF_FINI struct buf table = {0};
    char *save = NULL, at[PATH_MAX], options[512];
    int r = file_read("/proc/self/mountinfo", MOUNTS_MAX, &table, err);
    for (char *line = r ? NULL : strtok_r(table.data, "\n", &save); line && r == 0;
         line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "%*s %*s %*s %*s %4095s %511s", at, options) != 2)
            continue;
        unescape(at);
        if (strcmp(at, path) == 0 || is_below(at, path))
            r = remount(at, options, err);
    }
    return r;
}

static int lock(const char *path, struct err *err) {
    int r = mount_bind(path, path, err);
    return r ? r : remount_all(path, err);
}

/* A kept path is cloned as long as it is as it was, and put back upon itself. */
static int put_back(int tree, const char *path, struct err *err) {
    if (syscall(SYS_move_mount, tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return err_set(err, -errno, "keep %s as it is", path);
    return 0;
}

int mount_read_only(const char *path, const char *const *keep, size_t keep_n, struct err *err) {
    struct {
        int tree;
        const char *path;
    } kept[KEPT_MAX];
    struct stat st;
    size_t n = 0;
    int r = 0;
    if (lstat(path, &st) != 0 || S_ISLNK(st.st_mode))
        return 0;
    for (size_t i = 0; i < keep_n && n < KEPT_MAX && r == 0; i++) {
        if (!is_below(keep[i], path) || is_redundant(keep, keep_n, i, path))
            continue;
        kept[n].path = keep[i];
        kept[n].tree = (int)syscall(SYS_open_tree, AT_FDCWD, keep[i],
                                    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        if (kept[n].tree >= 0)
            n++;
        else if (errno != ENOENT)
            r = err_set(err, -errno, "keep %s as it is", keep[i]);
    }
    if (r == 0)
        r = lock(path, err);
    for (size_t i = 0; i < n; i++) {
        r = r ? r : put_back(kept[i].tree, kept[i].path, err);
        close(kept[i].tree);
    }
    return r;
}

int mount_terminals(const char *path, struct err *err) {
    if (mount("devpts", path, "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666") != 0)
        return err_set(err, -errno, "mount a devpts at %s", path);
    return 0;
}

/* ---- layers ---- */

static int refused_layer(int code, const char *dir, struct err *err) {
    if (code == -ENODEV)
        return err_say(err, -ENOTSUP,
                       "nothing can be laid over %s: this kernel has no overlayfs; modprobe "
                       "overlay",
                       dir);
    if (code == -EPERM)
        return err_say(err, -ENOTSUP,
                       "nothing can be laid over %s: this kernel mounts no overlayfs for "
                       "ordinary users (Linux 5.11 does); run as root",
                       dir);
    return err_set(err, code, "mount an overlay on %s", dir);
}

int mount_overlay(const char *dir, int lower, int upper, mode_t mode, struct err *err) {
    char options[200];
    if (mkdirat(upper, "changed", 0755) != 0 || fchmodat(upper, "changed", mode, 0) != 0 ||
        mkdirat(upper, "work", 0755) != 0)
        return err_set(err, -errno, "make a place for what is changed in %s", dir);
    /* What the kernel notes of a changed file is a trusted attribute; without root, a user's. */
    bool trusted = fsetxattr(upper, "trusted.rankquake", "", 0, 0) == 0;
    snprintf(options, sizeof(options),
             "%slowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d/changed,workdir="
             "/proc/self/fd/%d/work",
             trusted ? "" : "userxattr,", lower, upper, upper);
    if (mount("overlay", dir, "overlay", 0, options) != 0)
        return refused_layer(errno == EINVAL && !trusted ? -EPERM : -errno, dir, err);
    return 0;
}

/* On the tmpfs that covers dir. */
static int mount_over(const char *dir, int lower, struct err *err) {
    FILE_CLOSE int upper = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (upper < 0)
        return err_set(err, -errno, "open %s", dir);
    return mount_overlay(dir, lower, upper, 0755, err);
}

int mount_layer(const char *dir, struct err *err) {
    FILE_CLOSE int lower = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (lower < 0)
        return err_set(err, -errno, "open %s", dir);
    if (mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0)
        return err_set(err, -errno, "mount a tmpfs on %s", dir);
    int r = mount_over(dir, lower, err);
    if (r)
        umount2(dir, MNT_DETACH); /* else dir would be seen empty */
    return r;
}

int mount_pivot(const char *dir, const char *old, struct err *err) {
    char below[PATH_MAX];
    if (snprintf(below, sizeof(below), "%s%s", dir, old) >= (int)sizeof(below))
        return err_set(err, -ENAMETOOLONG, "%s", dir);
    int r = file_make_dirs(below, 0700, err);
    if (r)
        return r;
    if (syscall(SYS_pivot_root, dir, below) != 0)
        return err_set(err, -errno, "make %s the root", dir);
    return chdir("/") == 0 ? 0 : err_set(err, -errno, "go to /");
}

int mount_forget(const char *path, struct err *err) {
    if (umount2(path, MNT_DETACH) != 0)
        return err_set(err, -errno, "take %s out of sight", path);
    rmdir(path);
    return 0;
}
