/* A folder of class folders of images, as ImageNet's users lay them out: train/CLASS/FILE and
 * val/CLASS/FILE (or test/). Classes are numbered in the order of their names. */
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"
#include "scenarios/jobs/ranktrain/data/photo.h"
#include "scenarios/jobs/ranktrain/data/pictures.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns 1, 0, or a -errno where that cannot be told: what is not looked at may be one. */
static int is_folder(const char *path, struct err *err) {
    struct stat st;
    if (stat(path, &st) == 0)
        return S_ISDIR(st.st_mode);
    bool is_nothing = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
    return is_nothing ? 0 : err_set(err, -errno, "look at %s", path);
}

static int is_picture(const char *path, struct err *err) {
    const char *dot = strrchr(path, '.');
    if (!dot || (strcasecmp(dot, ".jpg") != 0 && strcasecmp(dot, ".jpeg") != 0 &&
                 strcasecmp(dot, ".png") != 0))
        return 0;
    int r = is_folder(path, err);
    return r < 0 ? r : !r;
}

/* The paths of what lies in a folder and is wanted (1, 0 or a -errno), by name. */
static int paths_in(const char *folder, int (*wanted)(const char *path, struct err *err),
                    struct texts *ret, struct err *err) {
    FILE_CLOSE_DIR DIR *d = opendir(folder);
    char path[PATH_MAX];
    if (!d)
        return err_set(err, -errno, "open %s", folder);
    size_t first = ret->n;
    errno = 0;
    for (struct dirent *e; (e = readdir(d)); errno = 0) {
        int n = snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        int r = *e->d_name != '.' && n < PATH_MAX ? wanted(path, err) : 0;
        if (r < 0)
            return r;
        if (r)
            texts_add(ret, "%s", path);
    }
    if (errno)
        return err_set(err, -errno, "list %s", folder);
    if (ret->n > first)
        qsort(ret->v + first, ret->n - first, sizeof(*ret->v), by_name);
    return 0;
}

/* DIR/train; DIR/val or DIR/test. */
static int set_folder(const char *dir, bool test, char ret[PATH_MAX], struct err *err) {
    static const char *const names[] = {"train", "val", "test"};
    for (int i = test ? 1 : 0; i < (test ? 3 : 1); i++) {
        snprintf(ret, PATH_MAX, "%s/%s", dir, names[i]);
        int r = is_folder(ret, err);
        if (r)
            return r < 0 ? r : 0;
    }
    return err_say(err, -ENOENT, "%s has no folder %s", dir, test ? "val or test" : "train");
}

static int class_folders(const char *dir, struct texts *ret, struct err *err) {
    char train[PATH_MAX];
    int r = set_folder(dir, false, train, err);
    if (r == 0)
        r = paths_in(train, is_folder, ret, err);
    if (r == 0 && ret->n < 2)
        r = err_say(err, -ENOENT,
                    "%s has %zu folders: one for each of at least two classes is "
                    "expected, with their images",
                    train, ret->n);
    if (r == 0 && ret->n > IMAGES_CLASSES)
        r = err_say(err, -E2BIG, "%s has %zu class folders: ranktrain knows %d at most", train,
                    ret->n, IMAGES_CLASSES);
    return r;
}

static int list(const struct dataset_place *at, bool test, struct texts *ret, struct err *err) {
    TEXTS_FINI struct texts classes = {0};
    char set[PATH_MAX], folder[PATH_MAX + NAME_MAX];
    int r = class_folders(at->dir, &classes, err);
    if (r == 0)
        r = set_folder(at->dir, test, set, err);
    for (size_t i = 0; i < classes.n && r == 0; i++) {
        size_t before = ret->n;
        snprintf(folder, sizeof(folder), "%s%s", set, strrchr(classes.v[i], '/'));
        r = is_folder(folder, err);
        if (r == 0)
            continue; /* no images of that class to test on */
        if (r > 0)
            r = paths_in(folder, is_picture, ret, err);
        if (r == 0 && !test && ret->n == before)
            r = err_say(err, -ENOENT, "%s has no .jpg, .jpeg or .png file", folder);
    }
    if (r == 0 && ret->n == 0)
        r = err_say(err, -ENOENT, "%s has no images of train's classes", set);
    return r;
}

/* The number of the class in whose folder a file lies. */
static int class_of(const char *path, const struct texts *classes) {
    const char *name = strrchr(path, '/'), *begin = name;
    while (begin > path && begin[-1] != '/')
        begin--;
    size_t n = (size_t)(name - begin);
    for (size_t i = 0; i < classes->n; i++) {
        const char *class = strrchr(classes->v[i], '/') + 1;
        if (strlen(class) == n && memcmp(class, begin, n) == 0)
            return (int)i;
    }
    return 0;
}

static int pack(const struct dataset_place *at, bool test, const struct texts *files,
                struct packing *p, struct err *err) {
    TEXTS_FINI struct texts classes = {0};
    int side = p->header.shape.side;
    uint8_t *pixels = mem_alloc(images_bytes(&p->header.shape), 1);
    int r = class_folders(at->dir, &classes, err);
    for (size_t i = 0; i < files->n && r == 0; i++) {
        if (!packing_wants(p)) {
            packing_skip(p);
            continue;
        }
        struct photo picture = {0};
        r = photo_read(files->v[i], side, &picture, err);
        if (r == 0) {
            photo_fit(&picture, side, pixels);
            r = packing_add(p, pixels, (uint8_t)class_of(files->v[i], &classes), err);
        }
        photo_fini(&picture);
    }
    free(pixels);
    return r;
}

static int classes(const struct dataset_place *at, struct images_shape *shape, struct err *err) {
    TEXTS_FINI struct texts folders = {0};
    int r = class_folders(at->dir, &folders, err);
    shape->classes = (int)folders.n;
    return r;
}

static int pictures(const struct dataset_place *at, const struct images_shape *shape,
                    struct images *ret, struct err *err) {
    TEXTS_FINI struct texts files = {0}, folders = {0};
    int r = class_folders(at->dir, &folders, err);
    if (r == 0)
        r = list(at, false, &files, err);
    if (r < 0)
        return r;
    uint8_t *labels = mem_alloc(files.n, 1);
    for (size_t i = 0; i < files.n; i++)
        labels[i] = (uint8_t)class_of(files.v[i], &folders);
    r = pictures_open(&files, labels, shape, at->dir, ret, err);
    free(labels);
    return r;
}

const struct dataset_kind dataset_folder = {
    .name = "folder",
    .summary = "JPEG and PNG files in train/CLASS/ and val/CLASS/, as of ImageNet",
    .remedy = "class folders lie in train/ and val/",
    .shape = {.channels = PHOTO_CHANNELS,
              .mean = {0.485f, 0.456f, 0.406f},
              .deviation = {0.229f, 0.224f, 0.225f}},
    .list = list,
    .pack = pack,
    .classes = classes,
    .pictures = pictures,
};
