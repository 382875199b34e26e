#include "harness/carrier/file_answer.h"

#include "base/base64.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_MAX = 10000 };

static void put_bytes(struct json_writer *w, const struct buf *bytes) {
    BUF_FINI struct buf text = {0};
    base64_put(&text, buf_str(bytes), bytes->len);
    json_put_string(w, "bytes", buf_str(&text));
}

static int read_at(int fd, int64_t at, size_t max, struct buf *out, struct err *err) {
    char piece[1 << 16];
    while (out->len < max) {
        size_t room = max - out->len < sizeof(piece) ? max - out->len : sizeof(piece);
        ssize_t n = pread(fd, piece, room, at + (int64_t)out->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, -errno, "read it");
        if (n == 0)
            return 0;
        buf_put(out, piece, (size_t)n);
    }
    return 0;
}

static int put_part(const char *path, const struct json *request, bool tail, struct json_writer *w,
                    struct err *err) {
    BUF_FINI struct buf bytes = {0};
    struct stat st;
    int64_t at = json_get_i64(request, "at", 0),
            max = json_get_i64(request, "max", FILE_ANSWER_MAX);
    if (at < 0 || max < 0)
        return err_say(err, -EINVAL, "%s: at and max are no less than 0", path);
    max = max < FILE_ANSWER_MAX ? max : FILE_ANSWER_MAX;
    FILE_CLOSE int fd = file_open_plain(path, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) != 0)
        return err_set(err, -errno, "look at %s", path);
    if (tail)
        at = st.st_size > max ? st.st_size - max : 0;
    int r = read_at(fd, at, (size_t)max, &bytes, err);
    if (r)
        return err_wrap(err, "%s: ", path);
    json_put_i64(w, "size", st.st_size);
    json_put_i64(w, "at", at);
    put_bytes(w, &bytes);
    return 0;
}

static const char *kind_of(mode_t mode) {
    return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "link" : "other";
}

static int put_list(const char *path, struct json_writer *w, struct err *err) {
    FILE_CLOSE_DIR DIR *d = opendir(path);
    const struct dirent *e;
    struct stat st;
    if (!d)
        return err_set(err, -errno, "list %s", path);
    json_array(w, "entries");
    for (int n = 0; n < ENTRIES_MAX && (e = readdir(d));) {
        if (str_eq(e->d_name, ".") || str_eq(e->d_name, "..") ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        json_object(w, NULL);
        json_put_string(w, "name", e->d_name);
        json_put_string(w, "kind", kind_of(st.st_mode));
        json_put_i64(w, "size", st.st_size);
        json_end_object(w);
        n++;
    }
    json_end_array(w);
    return 0;
}

void file_answer(const struct json *request, struct json_writer *w) {
    const char *path = json_get_string(request, "path", ""),
               *what = json_get_string(request, "do", "");
    struct err err;
    int r;
    json_put_string(w, "path", path);
    if (*path != '/')
        r = err_say(&err, -EINVAL, "%s: name a file by its whole path", path);
    else if (str_eq(what, "list"))
        r = put_list(path, w, &err);
    else if (str_eq(what, "read") || str_eq(what, "tail"))
        r = put_part(path, request, *what == 't', w, &err);
    else
        r = err_say(&err, -EINVAL, "%s: a file is read, listed or its tail is read, not \"%s\"",
                    path, what);
    if (r)
        json_put_string(w, "error", err.msg);
}
