#include "harness/play/parcel.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/run/control.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { PARCEL_VERSION = 1, FILE_MAX = 256 << 20, LINES_MAX = 1 << 20 };
static const size_t PARCEL_MAX = (size_t)4 << 30;

const char *const parcel_kinds[] = {"answered", "built", "control", "durations", NULL};

/* ---- what there is ---- */

/* The folder of the cache that holds the kinds. */
static int open_cache(bool make, struct folder *ret, struct err *err) {
    char path[PATH_MAX];
    int code = cache_dir("x", "y", path, sizeof(path), err);
    if (code)
        return code;
    path[strlen(path) - strlen("/x/y")] = '\0';
    code = make ? file_make_dirs(path, 0777, err) : 0;
    return code ? code : folder_open(ret, path, err);
}

static bool is_plain(const struct folder *f, const char *name) {
    FILE_CLOSE int fd = folder_open_file(f, name, NULL);
    return fd >= 0;
}

static int list_below(const struct folder *f, const char *name, struct texts *ret,
                      struct err *err) {
    TEXTS_FINI struct texts names = {0};
    int code = folder_list(f, name, folder_is_shown, &names, err);
    for (size_t i = 0; i < names.n && code == 0; i++) {
        BUF_FINI struct buf path = {0};
        buf_printf(&path, "%s/%s", name, names.v[i]);
        if (folder_has_directory(f, buf_str(&path)))
            code = list_below(f, buf_str(&path), ret, err);
        else if (!str_ends(names.v[i], ".tmp") && is_plain(f, buf_str(&path)))
            texts_add(ret, "%s", buf_str(&path));
    }
    return code;
}

int parcel_list(struct texts *ret, struct err *err) {
    struct folder cache = FOLDER_NONE;
    int code = open_cache(false, &cache, err);
    if (code == -ENOENT)
        return 0;
    for (size_t i = 0; parcel_kinds[i] && code == 0; i++)
        if (folder_has_directory(&cache, parcel_kinds[i]))
            code = list_below(&cache, parcel_kinds[i], ret, err);
    folder_close(&cache);
    return code;
}

/* ---- out ---- */

static void put_digest(struct json_writer *w, const void *data, size_t n) {
    char hex[65];
    sha256_of(data, n, hex);
    json_put_string(w, "sha256", hex);
}

static int put_file(struct buf *out, const struct folder *cache, const char *name,
                    struct parcel_sum *sum, struct err *err) {
    BUF_FINI struct buf content = {0}, coded = {0};
    struct json_writer w = {.out = out};
    int code = folder_read(cache, name, FILE_MAX, &content, err);
    if (code)
        return code;
    base64_put(&coded, content.data, content.len);
    json_object(&w, NULL);
    json_put_string(&w, "file", name);
    put_digest(&w, content.data, content.len);
    json_put_string(&w, "content", buf_str(&coded));
    json_end_object(&w);
    buf_putc(out, '\n');
    sum->files++;
    sum->bytes += (int64_t)content.len;
    return 0;
}

static void put_first(struct buf *out) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    json_put_i64(&w, "rankquake_cache", PARCEL_VERSION);
    json_put_string(&w, "version", RANKQUAKE_VERSION);
    json_end_object(&w);
    buf_putc(out, '\n');
}

static void put_last(struct buf *out, size_t files) {
    BUF_FINI struct buf line = {0};
    struct json_writer w = {.out = &line};
    json_object(&w, NULL);
    json_put_i64(&w, "files", (int64_t)files);
    put_digest(&w, out->data, out->len);
    json_end_object(&w);
    buf_printf(out, "%s\n", buf_str(&line));
}

int parcel_export(const char *path, struct parcel_sum *ret, struct err *err) {
    struct folder cache = FOLDER_NONE;
    TEXTS_FINI struct texts names = {0};
    BUF_FINI struct buf out = {0};
    struct parcel_sum sum = {0};
    int code = parcel_list(&names, err);
    put_first(&out);
    if (code == 0 && names.n)
        code = open_cache(false, &cache, err);
    for (size_t i = 0; i < names.n && code == 0; i++)
        code = put_file(&out, &cache, names.v[i], &sum, err);
    put_last(&out, sum.files);
    if (code == 0)
        code = file_write_atomic(path, out.data, out.len, err);
    folder_close(&cache);
    if (code == 0)
        *ret = sum;
    return code;
}

/* ---- in ---- */

static int refuse(struct err *err, const char *path, size_t line, const char *why) {
    return err_say(err, -EINVAL, "%s:%zu: %s; nothing was taken. Export it again", path, line, why);
}

static int check_first(const char *path, const struct json *line, struct err *err) {
    int64_t format = json_get_i64(line, "rankquake_cache", 0);
    const char *version = json_get_string(line, "version", "");
    if (!format)
        return refuse(err, path, 1, "this is no exported cache");
    if (format != PARCEL_VERSION)
        return err_say(
            err, -EINVAL,
            "%s: a cache of format %lld, and this rankquake reads format %d; nothing was "
            "taken",
            path, (long long)format, PARCEL_VERSION);
    if (!str_eq(version, RANKQUAKE_VERSION))
        return err_say(err, -EINVAL,
                       "%s: the cache of rankquake %.40s, and this is %s, which would use none of "
                       "it; nothing was taken",
                       path, version, RANKQUAKE_VERSION);
    return 0;
}

/* No name leads elsewhere: folder.h refuses "..", and the kind is one of ours. */
static bool is_allowed(const char *name) {
    for (size_t i = 0; parcel_kinds[i]; i++) {
        size_t n = strlen(parcel_kinds[i]);
        if (strncmp(name, parcel_kinds[i], n) == 0 && name[n] == '/' && name[n + 1] &&
            !strstr(name, "..") && !strstr(name, "//"))
            return true;
    }
    return false;
}

/* The line of a file: its content into ret; NULL: it is none, or was changed. */
static const char *read_file(const struct json *line, struct buf *ret) {
    const char *name = json_get_string(line, "file", ""),
               *text = json_get_string(line, "content", "");
    char hex[65];
    if (!is_allowed(name) || !base64_take(ret, text, strlen(text)))
        return NULL;
    sha256_of(ret->data, ret->len, hex);
    return str_eq(hex, json_get_string(line, "sha256", "")) ? name : NULL;
}

static bool is_last(const struct json *line, const char *text, size_t before, size_t files) {
    char hex[65];
    sha256_of(text, before, hex);
    return json_get_i64(line, "files", -1) == (int64_t)files &&
           str_eq(hex, json_get_string(line, "sha256", ""));
}

static int put_in_place(const struct folder *cache, const char *name, const struct buf *content,
                        struct parcel_sum *sum, struct err *err) {
    char way[PATH_MAX];
    bool renew = str_starts(name, "durations/");
    if (folder_has(cache, name) && !renew) {
        sum->kept++;
        return 0;
    }
    str_copy(way, sizeof(way), name);
    *strrchr(way, '/') = '\0';
    int code = folder_make(cache, way, 0777, err);
    if (code == 0)
        code = folder_write_synced(cache, name, buf_str(content), content->len, err);
    sum->files += code == 0;
    sum->bytes += code == 0 ? (int64_t)content->len : 0;
    return code;
}

static bool is_result(const char *name) {
    return str_ends(name, "/control.json") || str_ends(name, "/built.json");
}

/* cache NULL: it is only checked. control.json comes behind its weights, built.json behind what was
 * built: whoever finds the result finds them, so it is put in place in a second pass. */
static int take_lines(const char *path, const struct buf *text, const struct folder *cache,
                      bool results, struct parcel_sum *sum, struct err *err) {
    size_t at = 0, number = 1, files = 0;
    for (const char *end; at < text->len; at = (size_t)(end - text->data) + 1, number++) {
        ARENA_FINI struct arena a = {0};
        BUF_FINI struct buf content = {0};
        const char *line = text->data + at, *name;
        end = memchr(line, '\n', text->len - at);
        const struct json *j = end ? json_parse(&a, line, (size_t)(end - line), NULL) : NULL;
        if (!j)
            return refuse(err, path, number, end ? "this line is no JSON" : "it is cut off here");
        if (number == 1) {
            int code = check_first(path, j, err);
            if (code)
                return code;
        } else if (json_get(j, "files")) {
            bool whole = is_last(j, text->data, at, files) && end + 1 == text->data + text->len;
            return whole ? 0 : refuse(err, path, number, "it is not what was exported");
        } else {
            name = read_file(j, &content);
            if (!name)
                return refuse(err, path, number, "this file is not what was exported");
            files++;
            if (cache && is_result(name) == results) {
                int code = put_in_place(cache, name, &content, sum, err);
                if (code)
                    return code;
            }
        }
    }
    return refuse(err, path, number, "it is cut off here");
}

int parcel_import(const char *path, struct parcel_sum *ret, struct err *err) {
    struct folder cache = FOLDER_NONE;
    BUF_FINI struct buf text = {0};
    struct parcel_sum sum = {0};
    int code = file_read_plain(path, PARCEL_MAX, &text, err);
    if (code == 0)
        code = take_lines(path, &text, NULL, false, &sum, err);
    if (code == 0)
        code = open_cache(true, &cache, err);
    if (code == 0)
        code = take_lines(path, &text, &cache, false, &sum, err);
    if (code == 0)
        code = take_lines(path, &text, &cache, true, &sum, err);
    folder_close(&cache);
    if (code == 0)
        *ret = sum;
    return code;
}
