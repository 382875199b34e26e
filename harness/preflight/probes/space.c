/* Whether there is room where checkpoints and logs go. */
#include "harness/preflight/probe.h"

#include "base/sys/file.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

enum { MB_LEAST = 1024, INODES_LEAST = 10000 };

static void put_room(struct json_writer *w, const char *path) {
    struct statvfs fs;
    json_object(w, NULL);
    json_put_string(w, "path", path);
    if (statvfs(path, &fs) < 0) {
        json_put_string(w, "failed", strerror(errno));
    } else {
        json_put_i64(w, "free_mb", (int64_t)((double)fs.f_bavail * (double)fs.f_frsize / 1048576));
        /* Some file systems have as many as they like, and say 0. */
        json_put_i64(w, "free_inodes", fs.f_files ? (int64_t)fs.f_favail : -1);
    }
    json_end_object(w);
}

static void look(const struct json *given, struct json_writer *w) {
    const char *shared = json_get_string(given, "shared", NULL);
    json_array(w, "places");
    if (shared)
        put_room(w, shared);
    put_room(w, file_temp_base());
    json_end_array(w);
}

static void check(struct probing *p, const char *host, const struct json *place, int64_t least_mb) {
    const char *path = json_get_string(place, "path", "?");
    const char *failed = json_get_string(place, "failed", NULL);
    int64_t mb = json_get_i64(place, "free_mb", 0), inodes = json_get_i64(place, "free_inodes", -1);
    if (failed)
        probe_fail(p, "%s: %s: %s", host, path, failed);
    else if (mb < least_mb)
        probe_fail(p, "%s: %s has %lld MB free, and %lld are asked for", host, path, (long long)mb,
                   (long long)least_mb);
    else if (inodes >= 0 && inodes < INODES_LEAST)
        probe_fail(p, "%s: %s has %lld inodes free, and %d are asked for", host, path,
                   (long long)inodes, INODES_LEAST);
}

static void ask(struct probing *p) {
    int64_t least_mb = json_get_i64(p->given, "space_mb", MB_LEAST);
    const struct json **v = probe_look_all(p);
    for (size_t i = 0; i < p->n; i++)
        json_each(place, json_get(v[i], "places")) check(p, p->v[i].host, place, least_mb);
    probe_pass(p, "at least %lld MB and %d inodes are free", (long long)least_mb, INODES_LEAST);
}

const struct probe probe_space = {
    .name = "space",
    .text = "free room and inodes in the shared directory and the temporary one",
    .within_ns = INT64_C(10) * 1000000000,
    .look = look,
    .ask = ask,
};
