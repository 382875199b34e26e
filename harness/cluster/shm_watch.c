#include "harness/cluster/shm_watch.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHM "/dev/shm/"

enum { MAPS_MAX = 64 << 20 };

struct shm_watch_kept {
    char path[sizeof(SHM) + 256];
    ino_t inode;
};

static struct {
    struct shm_watch_kept *v;
    size_t n;
} all;

int shm_watch_open(void) {
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd >= 0 && inotify_add_watch(fd, SHM, IN_CREATE | IN_MOVED_TO) >= 0)
        return fd;
    file_close(&fd);
    return -1;
}

static bool has_open(pid_t pid, const char *path) {
    char dir[64], name[340], link[sizeof(SHM) + 260];
    bool has = false;
    snprintf(dir, sizeof(dir), "/proc/%d/fd", (int)pid);
    FILE_CLOSE_DIR DIR *d = opendir(dir);
    for (struct dirent *e; d && !has && (e = readdir(d));) {
        snprintf(name, sizeof(name), "%s/%s", dir, e->d_name);
        ssize_t n = readlink(name, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = '\0';
        has = strcmp(link, path) == 0;
    }
    return has;
}

static bool has_mapped(pid_t pid, const char *path) {
    char file[64];
    BUF_FINI struct buf maps = {0};
    bool has = false;
    snprintf(file, sizeof(file), "/proc/%d/maps", (int)pid);
    if (file_read(file, MAPS_MAX, &maps, NULL) == 0)
        for (const char *at = buf_str(&maps); !has && (at = strstr(at, path)); at += strlen(path))
            has = at[strlen(path)] == '\n';
    return has;
}

static bool is_ours(const char *path) {
    pid_t *pids;
    size_t n = process_list_descendants(getpid(), &pids);
    bool ours = false;
    for (size_t i = 0; i < n && !ours; i++)
        ours = has_open(pids[i], path) || has_mapped(pids[i], path);
    free(pids);
    return ours;
}

static void keep(const char *name) {
    struct shm_watch_kept k;
    struct stat st;
    snprintf(k.path, sizeof(k.path), SHM "%.255s", name);
    if (lstat(k.path, &st) != 0 || st.st_uid != geteuid() || !is_ours(k.path))
        return;
    k.inode = st.st_ino;
    mem_push(all.v, all.n) = k;
}

void shm_watch_read(int fd) {
    char events[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n;
    while (fd >= 0 && (n = read(fd, events, sizeof(events))) > 0)
        for (char *at = events; at < events + n;) {
            const struct inotify_event *e = (const void *)at;
            if (e->len)
                keep(e->name);
            at += sizeof(*e) + e->len;
        }
}

static bool is_left(const struct shm_watch_kept *k) {
    struct stat st;
    return lstat(k->path, &st) == 0 && st.st_ino == k->inode;
}

char **shm_watch_left(void) {
    char **left = mem_array(char *, all.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < all.n; i++)
        if (is_left(&all.v[i]))
            left[n++] = all.v[i].path;
    return left;
}

void shm_watch_remove(void) {
    for (size_t i = 0; i < all.n; i++)
        if (is_left(&all.v[i]))
            unlink(all.v[i].path);
    free(all.v);
    all.v = NULL;
    all.n = 0;
}
