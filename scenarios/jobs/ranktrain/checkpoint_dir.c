#include "scenarios/jobs/ranktrain/checkpoint_dir.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int checkpoint_dir_above(const char *path, char ret[PATH_MAX]) {
    int missing = 0;
    snprintf(ret, PATH_MAX, "%s", path);
    for (; *ret && !file_exists(ret); missing++) {
        char *end = ret + strlen(ret);
        while (end > ret && end[-1] == '/')
            end--;
        while (end > ret && end[-1] != '/')
            end--;
        *end = '\0';
    }
    if (!*ret)
        snprintf(ret, PATH_MAX, "%s", *path == '/' ? "/" : ".");
    return missing;
}

void checkpoint_dir_name(int64_t step, char ret[CHECKPOINT_DIR_NAME]) {
    snprintf(ret, CHECKPOINT_DIR_NAME, "step-%08lld", (long long)step);
}

/* Returns -1 for a name that is none. */
static int64_t step_of(const char *name) {
    char again[CHECKPOINT_DIR_NAME];
    if (strncmp(name, "step-", 5) != 0)
        return -1;
    int64_t step = strtoll(name + 5, NULL, 10);
    checkpoint_dir_name(step, again);
    return step >= 0 && strcmp(name, again) == 0 ? step : -1;
}

static int newest_first(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

DIR *checkpoint_dir_list(int dir, const char *name) {
    FILE_CLOSE int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (d)
        file_keep(&fd);
    return d;
}

int checkpoint_dir_steps(int dir, int64_t **ret, struct err *err) {
    FILE_CLOSE_DIR DIR *d = checkpoint_dir_list(dir, ".");
    if (!d)
        return err_set(err, -errno, "list");
    int64_t *steps = NULL;
    size_t n = 0;
    errno = 0;
    for (struct dirent *e; (e = readdir(d)); errno = 0)
        if (step_of(e->d_name) >= 0)
            mem_push(steps, n) = step_of(e->d_name);
    if (errno) { /* what has not been read may be the newest */
        int r = -errno;
        free(steps);
        return err_set(err, r, "list");
    }
    if (n)
        qsort(steps, n, sizeof(*steps), newest_first);
    *ret = steps;
    return (int)n;
}

int checkpoint_dir_read(int dir, int64_t step, const char *file, size_t max, struct buf *ret,
                        struct err *err) {
    char path[CHECKPOINT_DIR_NAME + 64], name[CHECKPOINT_DIR_NAME];
    checkpoint_dir_name(step, name);
    snprintf(path, sizeof(path), "%s/%s", name, file);
    FILE_CLOSE int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : file_read_fd(fd, max, ret, NULL);
    return r < 0 ? err_set(err, r, "%s", file) : 0;
}

int checkpoint_dir_manifest(int dir, int64_t step, struct manifest *ret, struct err *err) {
    BUF_FINI struct buf text = {0};
    struct manifest m;
    int r = checkpoint_dir_read(dir, step, MANIFEST_NAME, MANIFEST_BYTES_MAX, &text, err);
    if (r < 0)
        return r;
    r = manifest_read(buf_str(&text), text.len, &m, err);
    if (r < 0)
        return err_wrap(err, MANIFEST_NAME ": "), r;
    if (m.step != step)
        return err_say(err, -EBADMSG, MANIFEST_NAME ": it is of step %lld", (long long)m.step);
    *ret = m;
    return 0;
}

void checkpoint_dir_remove(int dir, const char *name) {
    FILE_CLOSE_DIR DIR *d = checkpoint_dir_list(dir, name);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlinkat(dirfd(d), e->d_name, 0);
    unlinkat(dir, name, AT_REMOVEDIR);
}

void checkpoint_dir_sweep(int dir, int64_t round) {
    FILE_CLOSE_DIR DIR *d = checkpoint_dir_list(dir, ".");
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *at = strstr(e->d_name, ".round-");
        bool draft = strncmp(e->d_name, ".step-", 6) == 0,
             token = strncmp(e->d_name, ".place-", 7) == 0;
        if (!(draft || token) || !at || strtoll(at + 7, NULL, 10) > round)
            continue;
        if (token)
            unlinkat(dir, e->d_name, 0);
        else
            checkpoint_dir_remove(dir, e->d_name);
    }
}
