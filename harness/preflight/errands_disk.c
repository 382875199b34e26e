/* What one host does with files of a directory that all are said to share. */
#include "harness/preflight/outpost.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TOKEN_MAX = 256 };

static int write_synced(const char *path, const char *text, int64_t *ret_fsync_ns) {
    FILE_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return -errno;
    int64_t began = clock_monotonic_ns();
    if (fsync(fd) < 0)
        return -errno;
    *ret_fsync_ns = clock_monotonic_ns() - began;
    return 0;
}

/* {"path", "text"}: written under another name, synced, and renamed, as a checkpoint is. */
static void run_write(struct outpost *o, const struct json *asked, struct json_writer *w) {
    const char *path = json_get_string(asked, "path", ""),
               *text = json_get_string(asked, "text", "");
    ARENA_FINI struct arena a = {0};
    const char *before = arena_printf(&a, "%s.tmp", path);
    int64_t fsync_ns = 0, began;
    (void)o;
    int r = write_synced(before, text, &fsync_ns);
    began = clock_monotonic_ns();
    if (r == 0 && rename(before, path) < 0)
        r = -errno;
    if (r < 0) {
        unlink(before);
        if (r == -ENOENT)
            errand_failed(w, r, "write %s, which is not shared with who has it", path);
        else
            errand_failed(w, r, "write %s", path);
        return;
    }
    json_put_i64(w, "fsync_us", fsync_ns / 1000);
    json_put_i64(w, "rename_us", (clock_monotonic_ns() - began) / 1000);
}

/* A fresh open reads that text, until then. A network file system shows it when its own caches say so, and
 * tells nobody: this is what is measured. */
static bool read_until(const char *path, const char *text, int64_t until_ns, bool *ret_there) {
    for (;;) {
        BUF_FINI struct buf found = {0};
        bool last = clock_monotonic_ns() >= until_ns;
        *ret_there = file_read_plain(path, TOKEN_MAX, &found, NULL) == 0;
        if (*ret_there && str_eq(buf_str(&found), text))
            return true;
        if (last)
            return false;
        struct timespec pace = {.tv_nsec = 2000000};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pace, NULL);
    }
}

/* {"files": [{"name", "path", "text"}], "within_ms"}: "us" until all were read, "missing" lists the others. */
static void run_read(struct outpost *o, const struct json *asked, struct json_writer *w) {
    int64_t began = clock_monotonic_ns();
    int64_t until = began + json_get_i64(asked, "within_ms", 0) * 1000000;
    bool there;
    (void)o;
    json_array(w, "missing");
    json_each(file, json_get(asked, "files")) {
        if (read_until(json_get_string(file, "path", ""), json_get_string(file, "text", ""), until,
                       &there))
            continue;
        json_object(w, NULL);
        json_put_string(w, "name", json_get_string(file, "name", "?"));
        json_put_bool(w, "there", there);
        json_end_object(w);
    }
    json_end_array(w);
    json_put_i64(w, "us", (clock_monotonic_ns() - began) / 1000);
}

static void run_remove(struct outpost *o, const struct json *asked, struct json_writer *w) {
    const char *path = json_get_string(asked, "path", "");
    (void)o;
    if (unlink(path) < 0 && errno != ENOENT)
        errand_failed(w, -errno, "remove %s", path);
}

const struct errand errands_disk[] = {
    {"write", run_write, true}, {"read", run_read, true}, {"remove", run_remove, true}, {0}};
