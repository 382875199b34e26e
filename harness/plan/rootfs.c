#include "harness/plan/rootfs.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/mount.h"
#include "base/sys/namespace.h"
#include "base/sys/root.h"
#include "harness/plan/entries.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void rootfs_make(struct plan *p) {
    const char *dir = p->scenario->cluster.rootfs;
    char *real = dir ? realpath(dir, NULL) : NULL;
    p->rootfs = real ? arena_strdup(&p->arena, real) : dir; /* rootfs_check refuses that one */
    free(real);
}

/* ---- what is whose ---- */

bool plan_is_below(const char *path, const char *dir) {
    size_t n = strlen(dir);
    while (n && dir[n - 1] == '/')
        n--;
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

bool plan_is_shown(const char *dir) {
    static const char *const systems[] = {"/usr", "/etc", "/bin",  "/sbin", "/lib", "/lib64",
                                          "/dev", "/sys", "/proc", "/var",  "/boot"};
    static const char *const whole[] = {"/", "/tmp", "/run", "/opt", "/home", "/srv", "/mnt"};
    for (size_t i = 0; i < sizeof(systems) / sizeof(*systems); i++)
        if (plan_is_below(dir, systems[i]))
            return false;
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        if (str_eq(dir, whole[i]))
            return false;
    return true;
}

/* Of an absolute path, as a node sees it. */
static bool is_hosts(const char *path) {
    static const char *const kernels[] = {"/dev", "/sys", "/proc"};
    char *cwd = getcwd(NULL, 0);
    bool hosts = cwd && plan_is_shown(cwd) && plan_is_below(path, cwd);
    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels) && !hosts; i++)
        hosts = plan_is_below(path, kernels[i]);
    free(cwd);
    return hosts;
}

int rootfs_open(const struct plan *p, const char *path, int flags) {
    ARENA_FINI struct arena a = {0};
    flags = flags ? flags : O_PATH;
    if (p && p->rootfs && *path != '/') {
        char *cwd = getcwd(NULL, 0);
        path = arena_printf(&a, "%s/%s", cwd ? cwd : "", path);
        free(cwd);
    }
    int fd;
    if (p && p->rootfs && !is_hosts(path)) {
        fd = root_open(p->rootfs, path, flags);
    } else {
        fd = open(path, flags | O_CLOEXEC);
        fd = fd < 0 ? -errno : fd;
    }
    return fd;
}

int plan_open(const struct plan *p, const char *path) {
    char found[32];
    struct stat st;
    FILE_CLOSE int at = rootfs_open(p, path, 0);
    if (at < 0)
        return at;
    if (fstat(at, &st) != 0 || !S_ISREG(st.st_mode))
        return -EINVAL;
    snprintf(found, sizeof(found), "/proc/self/fd/%d", at);
    int fd = open(found, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

enum found rootfs_look(const struct plan *p, const char *path) {
    char through[32];
    struct stat st;
    enum found found = NOT_THERE;
    int fd = rootfs_open(p, path, 0);
    if (fd < 0)
        return NOT_THERE;
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode)) {
        snprintf(through, sizeof(through), "/proc/self/fd/%d", fd);
        found = access(through, X_OK) ? NOT_EXECUTABLE : FOUND;
    }
    close(fd);
    return found;
}

static int enter(const char *dir, struct err *err) {
    int r = namespace_enter(err);
    if (r == 0 && unshare(CLONE_NEWNS) != 0)
        r = err_set(err, -errno, "make a mount namespace");
    if (r == 0)
        r = mount_make_private(err);
    if (r == 0)
        r = mount_layer(dir, err);
    if (r == 0 && (chroot(dir) != 0 || chdir("/") != 0))
        r = err_set(err, -errno, "go into %s", dir);
    return r;
}

int rootfs_enter(void *dir) {
    return enter(dir, NULL);
}

static void try_in_child(const char *dir, int out) __attribute__((noreturn));
static void try_in_child(const char *dir, int out) {
    struct err why = {0};
    int r = enter(dir, &why);
    _exit(r && write(out, &why, sizeof(why)) != sizeof(why) ? 2 : r != 0);
}

int rootfs_try(const struct plan *p, struct err *err) {
    struct err why;
    int out[2], status;
    if (!p->rootfs)
        return 0;
    if (pipe2(out, O_CLOEXEC) != 0)
        return err_set(err, -errno, "make a pipe");
    pid_t pid = fork();
    if (pid == 0)
        try_in_child(p->rootfs, out[1]);
    close(out[1]);
    ssize_t n = pid < 0 ? -1 : read(out[0], &why, sizeof(why));
    close(out[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return err_set(err, -ECHILD, "try %s as the root of a node", p->rootfs);
    if (status == 0)
        return 0;
    return err_say(err, -ENOTSUP, "cluster.rootfs: %s",
                   n == (ssize_t)sizeof(why) ? why.msg : "the trial of it died");
}

/* ---- checks ---- */

static int check_directory(const struct plan *p, struct err *err) {
    struct stat st;
    if (stat(p->rootfs, &st) != 0)
        return err_say(err, -ENOENT, "cluster.rootfs: %s: %s", p->rootfs, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return err_say(err, -ENOENT, "cluster.rootfs: %s is no directory", p->rootfs);
    if (str_eq(p->rootfs, "/"))
        return err_say(err, -ENOENT,
                       "cluster.rootfs: / is this host's own; leave rootfs out to use it");
    if (access(p->rootfs, R_OK | X_OK) != 0)
        return err_say(err, -ENOENT, "cluster.rootfs: %s cannot be read: %s", p->rootfs,
                       strerror(errno));
    return 0;
}

static bool host_has(const char *path) {
    return access(path, F_OK) == 0;
}

/* The part of a word that is an absolute path: "/x", "--data=/x". */
static const char *path_in(const char *word) {
    const char *equals = strchr(word, '=');
    if (*word == '/')
        return word;
    return equals && equals[1] == '/' ? equals + 1 : NULL;
}

/* What is to be made by the job exists nowhere yet; /tmp and /run are each node's own. */
static int check_word(const struct plan *p, const char *key, const char *word, struct err *err) {
    const char *path = path_in(word);
    if (!path || plan_is_below(path, "/tmp") || plan_is_below(path, "/run") || !host_has(path))
        return 0;
    int fd = rootfs_open(p, path, 0);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    return err_say(
        err, -ENOENT,
        "%s: %s exists on this host, but not in the nodes, whose root file system is %s; "
        "put it there, or start rankquake in a directory above it",
        key, path, p->rootfs);
}

static int check_words(const struct plan *p, const char *key, const char *const *words,
                       struct err *err) {
    int r = 0;
    for (; words && *words && r == 0; words++)
        r = check_word(p, key, *words, err);
    return r;
}

int rootfs_check(const struct plan *p, struct err *err) {
    const struct job_spec *j = &p->scenario->job;
    int r;
    if (!p->rootfs)
        return 0;
    if ((r = check_directory(p, err)) || (r = check_words(p, "job.run", j->run, err)) ||
        (r = check_words(p, "launcher", j->launcher_argv, err)))
        return r;
    return check_words(p, "job.launcher_args", j->launcher_args, err);
}
