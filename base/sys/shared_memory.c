#include "base/sys/shared_memory.h"

#include "base/buf.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MAPS_MAX = 64 << 20, ID_SIZE = 64 };

static void add_once(struct texts *ret, const char *id) {
    if (!texts_has(ret, id))
        texts_add(ret, "%s", id);
}

static void put_id(const struct stat *st, char *ret, size_t size) {
    snprintf(ret, size, "%02x:%02x %llu", major(st->st_dev), minor(st->st_dev),
             (unsigned long long)st->st_ino);
}

const char *shared_memory_id(const char *path, char *ret, size_t size) {
    struct stat st;
    *ret = '\0';
    if (lstat(path, &st) == 0)
        put_id(&st, ret, size);
    return ret;
}

static void add_open(pid_t pid, struct texts *ret) {
    char dir[64], link[512], id[ID_SIZE];
    snprintf(dir, sizeof(dir), "/proc/%d/fd", (int)pid);
    FILE_CLOSE_DIR DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = '\0';
        if (!strstr(link, SHARED_MEMORY) || fstatat(dirfd(d), e->d_name, &st, 0) != 0)
            continue;
        put_id(&st, id, sizeof(id));
        add_once(ret, id);
    }
}

/* "7f6884fba000-7f6884fbb000 rw-s 00000000 00:2a 3    /dev/shm/psm_b7edfc7e" */
static void add_mapped(const char *line, struct texts *ret) {
    char device[16], id[ID_SIZE];
    unsigned long long inode;
    int at = 0;
    if (sscanf(line, "%*s %*s %*s %15s %llu %n", device, &inode, &at) != 2 || !at)
        return;
    const char *end = strchrnul(line, '\n'), *path = strstr(line + at, SHARED_MEMORY);
    if (!path || path > end)
        return;
    snprintf(id, sizeof(id), "%s %llu", device, inode);
    add_once(ret, id);
}

void shared_memory_held(pid_t pid, struct texts *ret) {
    BUF_FINI struct buf maps = {0};
    char path[64];
    add_open(pid, ret);
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    if (file_read(path, MAPS_MAX, &maps, NULL) != 0)
        return;
    for (const char *line = buf_str(&maps); *line; line = strchrnul(line, '\n'), line += *line != 0)
        add_mapped(line, ret);
}
