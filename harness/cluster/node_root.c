/* node_root: a node's own root file system. The tree is the lower layer of an overlay whose changes
 * live in memory and end with the node; so nothing is ever written to the tree, and a program in it
 * may write wherever it would on a machine of its own. What a node sees of the host is bound into
 * it: devices, the caller's directory, the run directory, our programs with their libraries. */
#include "harness/cluster/node_helper.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"
#include "base/sys/mount.h"
#include "harness/cluster/bundle.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the host's root is seen until the node is arranged. */
#define HOST "/.rankquake-host"

/* The deepest directory above path that is there. */
static void existing_above(char *path) {
    struct stat st;
    do
        *strrchr(path, '/') = '\0';
    while (*path && stat(path, &st) != 0);
}

/* Whoever does not own the tree may not make anything in its folders, not even in memory; in a
 * layer of their own on top of such a folder they may. */
static int place(const char *path, bool directory, struct err *err) {
    char above[PATH_MAX];
    struct err why;
    int r = mount_place(path, directory, &why);
    if (r == 0)
        return 0;
    if ((r == -EACCES || r == -EPERM) && str_copy(above, sizeof(above), path)) {
        existing_above(above);
        if (*above && mount_layer(above, &why) == 0)
            r = mount_place(path, directory, &why);
    }
    return r ? err_say(err, r, "%s", why.msg) : 0;
}

/* path of the host, at `at` in the node. What is not on the host is passed over. All paths are free
 * of links, until a job that shares a directory with other nodes puts one on the way. */
static int show(const char *path, const char *at, struct err *err) {
    char source[64];
    struct stat st;
    struct folder host;
    int r = folder_open(&host, HOST, err);
    if (r)
        return r;
    FILE_CLOSE int found = *path ? folder_find(&host, path + 1, err) : -ENOENT;
    folder_close(&host);
    if (found < 0 || fstat(found, &st) != 0)
        return found == -ELOOP ? found : 0;
    snprintf(source, sizeof(source), "/proc/self/fd/%d", found);
    r = place(at, S_ISDIR(st.st_mode), err);
    return r ? r : mount_bind(source, at, err);
}

static int show_all(const struct json *list, struct err *err) {
    json_each(it, list) {
        int r = show(json_string(it, ""), json_string(it, ""), err);
        if (r)
            return r;
    }
    return 0;
}

static int show_programs(const struct json *root, struct err *err) {
    char name[NAME_MAX], at[PATH_MAX];
    int r = show(json_get_string(root, "programs", ""), BUNDLE_PROGRAMS, err);
    json_each(it, json_get(root, "libraries")) {
        const char *entry = json_string(it, ""), *equals = strchr(entry, '=');
        if (r || !equals || (size_t)(equals - entry) >= sizeof(name))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(equals - entry), entry);
        snprintf(at, sizeof(at), BUNDLE_LIBRARIES "/%s", name);
        r = show(equals + 1, at, err);
    }
    return r;
}

static int make_own(struct err *err) {
    static const char *const own[] = {"/proc", "/sys", "/dev", "/tmp", "/run"};
    int r = 0;
    for (size_t i = 0; i < sizeof(own) / sizeof(*own) && r == 0; i++)
        r = file_make_dirs(own[i], 0755, err);
    if (r == 0)
        r = mount_proc(err);
    if (r == 0)
        r = show("/dev", "/dev", err);
    if (r == 0)
        r = show("/sys", "/sys", err);
    return r;
}

/* A link of the tree may lead to a place that only a running system has: a file is put instead. */
static int own_file(const char *path, struct err *err) {
    struct stat st;
    if (stat(path, &st) == 0)
        return 0;
    if (unlink(path) != 0 && errno != ENOENT) {
        int r = mount_layer("/etc", err);
        if (r)
            return r;
        unlink(path);
    }
    return place(path, false, err);
}

/* Nodes know each other by /etc/hosts; there is nobody else to be asked, so this is a wish. */
static void name_servers(const char *host_file) {
    if (*host_file && own_file("/etc/resolv.conf", NULL) == 0)
        show(host_file, "/etc/resolv.conf", NULL);
}

int node_root_enter(const struct json *root, struct err *err) {
    const char *dir = json_get_string(root, "dir", "");
    int r;
    if ((r = mount_layer(dir, err)) || (r = mount_pivot(dir, HOST, err)) || (r = make_own(err)))
        return r;
    return own_file("/etc/hosts", err);
}

int node_root_furnish(const struct json *root, struct err *err) {
    const char *home = json_get_string(root, "home", "");
    int r = show_all(json_get(root, "show"), err);
    if (*home == '/') /* a tree has nobody's; who needs it will say so */
        place(home, true, NULL);
    if (r == 0)
        r = show_programs(root, err);
    name_servers(json_get_string(root, "name_servers", ""));
    return r ? r : mount_forget(HOST, err);
}
