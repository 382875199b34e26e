#include "harness/cluster/layer.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/mount.h"
#include "base/sys/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct layer {
    char cwd[PATH_MAX], dir[PATH_MAX];
    int mounts;  /* on cwd */
    bool bound;  /* the run directory is below it, and has been brought back */
    bool copied; /* nothing is mounted: the job is in a copy */
};

static bool is_below(const char *path, const char *root) {
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && path[n] == '/';
}

/* What is mounted below would be missing in the layer. */
static int check_mounts(const char *cwd, struct err *err) {
    BUF_FINI struct buf text = {0};
    int r = file_read("/proc/self/mountinfo", 16 << 20, &text, err);
    char *rest = NULL;
    for (char *line = r ? NULL : strtok_r(text.data, "\n", &rest); line && r == 0;
         line = strtok_r(NULL, "\n", &rest)) {
        char path[PATH_MAX] = "";
        if (sscanf(line, "%*s %*s %*s %*s %4095s", path) == 1 && is_below(path, cwd))
            r = err_say(err, -ENOTSUP, "%s is mounted below %s", path, cwd);
    }
    return r;
}

/* On the file system of the run directory, which holds more than memory does. */
static int mount_on_disk(const char *cwd, const char *scratch, struct err *err) {
    char place[PATH_MAX];
    struct stat st;
    if (snprintf(place, sizeof(place), "%s/written", scratch) >= (int)sizeof(place))
        return err_set(err, -ENAMETOOLONG, "%s", scratch);
    int r = file_make_dirs(place, 0755, err);
    if (r)
        return r;
    FILE_CLOSE int lower = open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
    FILE_CLOSE int upper = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lower < 0 || upper < 0 || fstat(lower, &st) < 0)
        return err_set(err, -errno, "open %s and %s", cwd, place);
    return mount_overlay(cwd, lower, upper, st.st_mode & 07777, err);
}

static int mount_all(struct layer *l, const char *scratch, struct err *err) {
    struct err disk;
    char source[64];
    if (unshare(CLONE_NEWNS) != 0)
        return err_set(err, -errno, "have mounts of one's own");
    int r = mount_make_private(err);
    /* Opened in the namespace that it is bound in, and before it is covered. */
    FILE_CLOSE int run = open(l->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && run < 0)
        r = err_set(err, -errno, "open %s", l->dir);
    l->mounts = 1;
    if (r == 0 && mount_on_disk(l->cwd, scratch, &disk) != 0) {
        r = mount_layer(l->cwd, err);
        l->mounts = 2;
    }
    if (r) {
        l->mounts = 0;
        return r;
    }
    snprintf(source, sizeof(source), "/proc/self/fd/%d", run);
    if (is_below(l->dir, l->cwd))
        r = mount_bind(source, l->dir, err);
    l->bound = r == 0 && is_below(l->dir, l->cwd);
    if (r == 0 && chdir(l->cwd) != 0) /* the directory that a path leads to now */
        r = err_set(err, -errno, "go to %s", l->cwd);
    return r;
}

int layer_begin(const char *scratch, const char *dir, struct layer **ret, struct err *err) {
    struct layer *l = mem_new(struct layer);
    int r = 0;
    if (!getcwd(l->cwd, sizeof(l->cwd)))
        r = err_set(err, -errno, "find the current directory");
    else if (!str_copy(l->dir, sizeof(l->dir), dir))
        r = err_set(err, -ENAMETOOLONG, "%s", dir);
    else if (str_eq(l->cwd, "/"))
        r = err_say(err, -ENOTSUP, "the current directory is /; start from one of your own");
    if (r == 0)
        r = check_mounts(l->cwd, err);
    if (r == 0)
        r = mount_all(l, scratch, err);
    if (r)
        layer_end(l);
    else
        *ret = l;
    return r;
}

/* The name behind cwd on the way to the run directory. */
static void first_folder(const struct layer *l, char *ret, size_t size) {
    *ret = '\0';
    if (is_below(l->dir, l->cwd)) {
        const char *name = l->dir + strlen(l->cwd) + 1;
        snprintf(ret, size, "%.*s", (int)strcspn(name, "/"), name);
    }
}

int layer_copy(const char *scratch, const char *dir, struct layer **ret, struct err *err) {
    char to[PATH_MAX], runs[NAME_MAX + 1];
    struct layer *l = mem_new(struct layer);
    l->copied = true;
    int r = 0;
    if (!getcwd(l->cwd, sizeof(l->cwd)) || !str_copy(l->dir, sizeof(l->dir), dir) ||
        snprintf(to, sizeof(to), "%s/work", scratch) >= (int)sizeof(to))
        r = err_set(err, -ENAMETOOLONG, "find the current directory");
    if (r == 0)
        r = file_make_dirs(to, 0755, err);
    first_folder(l, runs, sizeof(runs));
    if (r == 0)
        r = layer_copy_tree(to, runs, err);
    if (r == 0 && chdir(to) != 0)
        r = err_set(err, -errno, "go to %s", to);
    if (r)
        free(l);
    else
        *ret = l;
    return r;
}

struct layer *layer_end(struct layer *l) {
    if (!l)
        return NULL;
    if (l->copied && chdir(l->cwd) != 0)
        (void)!chdir("/");
    if (l->bound)
        umount2(l->dir, MNT_DETACH);
    for (int i = 0; i < l->mounts; i++)
        umount2(l->cwd, MNT_DETACH);
    if (l->mounts && chdir(l->cwd) != 0)
        (void)!chdir("/"); /* it is gone: nothing can be written there either */
    free(l);
    return NULL;
}

static int try_layer(void *scratch, struct err *err) {
    struct layer *l = NULL;
    char place[PATH_MAX];
    int r = namespace_enter(err);
    if (r == 0)
        r = layer_begin(scratch, scratch, &l, err);
    layer_end(l);
    snprintf(place, sizeof(place), "%.4000s/written", (const char *)scratch);
    file_remove_tree(place, NULL);
    return r;
}

int layer_check(const char *scratch, struct err *err) {
    return namespace_try(0, try_layer, (char *)(uintptr_t)scratch, err);
}
