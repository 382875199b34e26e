#include "harness/cluster/shm_watch.h"

#include "base/mem.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "base/sys/shared_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

struct shm_watch_kept {
    char path[sizeof(SHARED_MEMORY) + 256];
    ino_t inode;
};

static struct {
    struct shm_watch_kept *v;
    size_t n;
} all;

int shm_watch_open(void) {
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd >= 0 && inotify_add_watch(fd, SHARED_MEMORY, IN_CREATE | IN_MOVED_TO) >= 0)
        return fd;
    file_close(&fd);
    return -1;
}

static bool holds(pid_t pid, const char *id) {
    TEXTS_FINI struct texts held = {0};
    shared_memory_held(pid, &held);
    return texts_has(&held, id);
}

static bool is_ours(const char *path) {
    pid_t *pids;
    size_t n = process_list_descendants(getpid(), &pids);
    char id[64];
    bool ours = false;
    shared_memory_id(path, id, sizeof(id));
    for (size_t i = 0; i < n && !ours; i++)
        ours = holds(pids[i], id);
    free(pids);
    return ours;
}

static void keep(const char *name) {
    struct shm_watch_kept k;
    struct stat st;
    snprintf(k.path, sizeof(k.path), SHARED_MEMORY "%.255s", name);
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
