#include "scenarios/jobs/ranktrain/prepare/prepare.h"
#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"
#include "scenarios/jobs/ranktrain/prepare/fetch.h"
#include "scenarios/jobs/ranktrain/data/folders.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Beside the prepared files; whoever holds the lock removes what somebody killed has left. */
#define LOCK    ".prepare.lock"
#define SOURCES ".prepare.sources"
#define PART    ".prepare.images"
#define FOLDERS ".prepare.folders"

struct work {
    const struct prepare *p;
    const struct dataset_kind *kind;
    struct dataset_place at;
    int dir;
};

static bool is_url(const char *s) {
    return strncmp(s, "http://", strlen("http://")) == 0 ||
           strncmp(s, "https://", strlen("https://")) == 0;
}

/* What the set is called there as class folders. */
static const char *folder_of(bool test) {
    return test ? "val" : "train";
}

/* Whether both sets are there, whole, and of the part and size that are asked for. Of class folders
 * train comes last. */
static bool is_done(const struct work *w) {
    struct dataset d;
    struct err ignored;
    if (w->p->folders)
        return faccessat(w->dir, folder_of(false), F_OK, 0) == 0;
    for (int test = 0; test < 2; test++)
        if (faccessat(w->dir, DATASET_FILE(test), F_OK, 0) < 0)
            return false;
    if (dataset_open(w->kind, w->p->to, w->p->side, DATASET_TRAIN | DATASET_TEST, &d, &ignored) < 0)
        return false;
    const struct images_shape *wanted = &w->kind->shape, *have = &d.train.shape;
    int side = wanted->side ? wanted->side : w->p->side ? w->p->side : have->side;
    bool done = d.train.part == w->p->part && d.train.parts == w->p->parts && have->side == side &&
                memcmp(have->mean, wanted->mean, sizeof(have->mean)) == 0;
    dataset_close(&d);
    return done;
}

static int clear(const struct work *w, struct err *err) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/" SOURCES, w->p->to);
    if (unlinkat(w->dir, PART, 0) < 0 && errno != ENOENT)
        return err_set(err, -errno, "%s/" PART, w->p->to);
    int r = file_remove_tree(path, err);
    snprintf(path, sizeof(path), "%s/" FOLDERS, w->p->to);
    return r == 0 ? file_remove_tree(path, err) : r;
}

/* Sets w->at.dir, to a directory in which the files are. */
static int find_sources(struct work *w, char sources[PATH_MAX], struct err *err) {
    const struct prepare *p = w->p;
    const char *from = p->from ? p->from : w->kind->dir ? w->kind->dir : w->kind->url;
    int known = 0, r;
    if (!from)
        return err_say(err, -EINVAL, "--dataset=%s has no usual place: say --from", w->kind->name);
    w->at.dir = from;
    if (!is_url(from)) {
        r = p->unverified ? 0 : fetch_verify(w->kind, from, &known, err);
        if (r == 0 && w->kind->files[0].name)
            printf("%s: %d of its files are the known ones\n", from, known);
        return r;
    }
    if (!w->kind->files[0].name)
        return err_say(err, -EINVAL,
                       "--dataset=%s is of no known files: --from must be a directory",
                       w->kind->name);
    snprintf(sources, PATH_MAX, "%s/" SOURCES, p->to);
    w->at.dir = sources;
    r = file_make_dirs(sources, 0755, err);
    const struct fetch_way way = {.cacert = p->cacert, .unverified = p->unverified};
    return r == 0 ? fetch_files(w->kind, from, sources, &way, err) : r;
}

/* What has been packed, as class folders, which appear with all that is in them. */
static int unfold(const struct work *w, int packed, bool test, struct err *err) {
    char folder[PATH_MAX];
    struct images d;
    uint32_t count = 0;
    snprintf(folder, sizeof(folder), "%s/" FOLDERS, w->p->to);
    int r = images_open(packed, PART, &d, err);
    if (r < 0)
        return r;
    r = folders_write(folder, &d, w->p->samples, &count, err);
    images_close(&d);
    if (r == 0 && (renameat(w->dir, FOLDERS, w->dir, folder_of(test)) < 0 || fsync(w->dir) < 0))
        r = err_set(err, -errno, "%s/%s", w->p->to, folder_of(test));
    if (r == 0)
        printf("%s/%s, %u images\n", w->p->to, folder_of(test), count);
    return r;
}

/* What was interrupted behind the first set has left that: all of it, for it has appeared so. */
static bool is_unfolded(const struct work *w, bool test) {
    return w->p->folders && faccessat(w->dir, folder_of(test), F_OK, 0) == 0;
}

/* The test set is the same for all parts. */
static int write_set(const struct work *w, bool test, struct err *err) {
    if (is_unfolded(w, test)) {
        printf("%s/%s is there already\n", w->p->to, folder_of(test));
        return 0;
    }
    uint32_t count = 0, part = test ? 0 : w->p->part, parts = test ? 1 : w->p->parts;
    FILE_CLOSE int fd =
        openat(w->dir, PART, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_set(err, -errno, "%s/" PART, w->p->to);
    int r = dataset_pack(w->kind, &w->at, test, part, parts, fd, &count, err);
    if (r < 0)
        return r;
    if (w->p->folders)
        return unfold(w, fd, test, err);
    if (fsync(fd) < 0 || renameat(w->dir, PART, w->dir, DATASET_FILE(test)) < 0 ||
        fsync(w->dir) < 0)
        return err_set(err, -errno, "%s/%s", w->p->to, DATASET_FILE(test));
    printf("%s/%s, %u images\n", w->p->to, DATASET_FILE(test), count);
    return 0;
}

static int prepare_all(struct work *w, struct err *err) {
    char sources[PATH_MAX];
    struct err ignored;
    int r = clear(w, err);
    if (r == 0)
        r = find_sources(w, sources, err);
    if (r == 0)
        r = write_set(w, true, err);
    if (r == 0)
        r = write_set(w, false, err);
    clear(w, &ignored);
    return r;
}

int prepare_run(const struct prepare *p, struct err *err) {
    struct work w = {.p = p, .kind = dataset_find(p->dataset, err), .dir = -1};
    if (!w.kind)
        return -EINVAL;
    w.at.side = p->side;
    int r = file_make_dirs(p->to, 0755, err);
    if (r < 0)
        return r;
    FILE_CLOSE int dir = open(p->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FILE_CLOSE int lock =
        dir < 0 ? -1 : openat(dir, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    w.dir = dir;
    if (lock < 0 || flock(lock, LOCK_EX) < 0)
        return err_set(err, -errno, "%s", p->to);
    if (is_done(&w)) {
        printf("%s holds it already\n", p->to);
        return 0;
    }
    return prepare_all(&w, err);
}
