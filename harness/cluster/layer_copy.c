/* Copies the directory that a run was started in, where no layer can be mounted on it. */
#include "harness/cluster/layer.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 20000, BYTES_MAX = 512 << 20 };

struct copying {
    const char *to;   /* of the copy */
    const char *runs; /* the first folder on the way from here to the run directory, or "" */
    long long files, bytes;
};

static int copy_bytes(int from, int to, off_t n) {
    while (n > 0) {
        ssize_t sent = sendfile(to, from, NULL, (size_t)n);
        if (sent < 0)
            return -errno;
        if (sent == 0)
            return 0; /* it has become shorter */
        n -= sent;
    }
    return 0;
}

static int copy_file(const char *path, const char *to, const struct stat *st) {
    FILE_CLOSE int in = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE_CLOSE int out =
        in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st->st_mode & 07777);
    return out < 0 ? -errno : copy_bytes(in, out, st->st_size);
}

static int copy_link(const char *path, const char *to) {
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    return symlink(target, to) == 0 ? 0 : -errno;
}

/* Histories of sources and of runs are no job's business; sockets and such cannot be copied. */
static bool is_left_out(const struct copying *c, const FTSENT *e) {
    return e->fts_level == 1 && (str_eq(e->fts_name, ".git") || str_eq(e->fts_name, c->runs));
}

static int copy_one(struct copying *c, FTS *tree, FTSENT *e, struct err *err) {
    char to[PATH_MAX];
    int r = 0;
    if (e->fts_level == 0 || e->fts_info == FTS_DP)
        return 0;
    if (is_left_out(c, e)) {
        fts_set(tree, e, FTS_SKIP);
        return 0;
    }
    if (snprintf(to, sizeof(to), "%s/%s", c->to, e->fts_path + 2) >= (int)sizeof(to))
        return err_set(err, -ENAMETOOLONG, "copy %s", e->fts_path);
    if (e->fts_info == FTS_F)
        c->bytes += e->fts_statp->st_size;
    if (++c->files > FILES_MAX || c->bytes > BYTES_MAX)
        return err_say(err, -ENOTSUP,
                       "the directory is too much to be copied for each run (more than %d files or "
                       "%d MB); start from one of the job's own, or --set job.writes=kept",
                       FILES_MAX, BYTES_MAX >> 20);
    if (e->fts_info == FTS_D)
        r = mkdir(to, 0700 | (e->fts_statp->st_mode & 07777)) == 0 ? 0 : -errno;
    else if (e->fts_info == FTS_F)
        r = copy_file(e->fts_accpath, to, e->fts_statp);
    else if (e->fts_info == FTS_SL || e->fts_info == FTS_SLNONE)
        r = copy_link(e->fts_accpath, to);
    return r == 0 || r == -EACCES ? 0 : err_set(err, r, "copy %s", e->fts_path);
}

int layer_copy_tree(const char *to, const char *runs, struct err *err) {
    char *roots[] = {".", NULL};
    struct copying c = {.to = to, .runs = runs};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
    int r = tree ? 0 : err_set(err, -errno, "read the current directory");
    for (FTSENT *e; r == 0 && (e = fts_read(tree));)
        r = copy_one(&c, tree, e, err);
    if (tree)
        fts_close(tree);
    return r;
}
