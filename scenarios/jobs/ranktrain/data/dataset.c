#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/data/cache.h"
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"

#include "base/sha256.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct dataset_kind *const kinds[] = {
#define DATASET_ROW(name) &dataset_##name,
    DATASETS(DATASET_ROW)
#undef DATASET_ROW
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds), SIDE = 32 };

void dataset_names(char *ret, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < KINDS && n < size; i++)
        n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? ", " : "", kinds[i]->name);
}

/* Fashion-MNIST, fashion_mnist and FashionMNIST as well as fashion-mnist. */
static bool is_name(const char *name, const char *said) {
    for (;; name++, said++) {
        name += *name == '-';
        said += *said == '-' || *said == '_';
        char low = *said >= 'A' && *said <= 'Z' ? (char)(*said - 'A' + 'a') : *said;
        if (*name != low)
            return false;
        if (!low)
            return true;
    }
}

const struct dataset_kind *dataset_find(const char *name, struct err *err) {
    char names[128];
    for (size_t i = 0; i < KINDS; i++)
        if (is_name(kinds[i]->name, name))
            return kinds[i];
    dataset_names(names, sizeof(names));
    err_say(err, -EINVAL, "--dataset=%s is not known: there are %s", name, names);
    return NULL;
}

const char *dataset_guess(const char *dir) {
    static const struct dataset_kind *const guesses[] = {&dataset_cifar10, &dataset_folder};
    for (size_t i = 0; dir && i < sizeof(guesses) / sizeof(*guesses); i++) {
        TEXTS_FINI struct texts files = {0};
        const struct dataset_place at = {.dir = dir, .side = SIDE};
        if (guesses[i]->list(&at, false, &files, NULL) == 0)
            return guesses[i]->name;
    }
    return dataset_fashion_mnist.name;
}

int dataset_pack(const struct dataset_kind *k, const struct dataset_place *at, bool test,
                 uint32_t part, uint32_t parts, int fd, uint32_t *ret_count, struct err *err) {
    TEXTS_FINI struct texts files = {0};
    struct images_shape shape = k->shape;
    struct packing p;
    if (!shape.side)
        shape.side = at->side ? at->side : SIDE;
    int r = k->classes ? k->classes(at, &shape, err) : 0;
    if (r == 0)
        r = k->list(at, test, &files, err);
    if (r < 0)
        return r;
    packing_begin(&p, fd, &shape, part, parts);
    r = k->pack(at, test, &files, &p, err);
    if (r == 0)
        r = packing_end(&p, err);
    *ret_count = p.header.count;
    packing_fini(&p);
    return r;
}

struct dataset_making {
    const struct dataset_kind *kind;
    struct dataset_place at;
    bool test;
};

static int make(int fd, const void *arg, struct err *err) {
    const struct dataset_making *m = arg;
    uint32_t count;
    return dataset_pack(m->kind, &m->at, m->test, 0, 1, fd, &count, err);
}

/* A name in the cache that stands for what the files are. */
static int name_of(const struct dataset_making *m, char *ret, size_t size, struct err *err) {
    TEXTS_FINI struct texts files = {0};
    BUF_FINI struct buf text = {0};
    char key[65];
    int r = m->kind->list(&m->at, m->test, &files, err);
    buf_printf(&text, "%d %d", IMAGES_VERSION, m->at.side);
    for (size_t i = 0; i < files.n && r == 0; i++) {
        struct stat st;
        if (stat(files.v[i], &st) < 0)
            return err_set(err, -errno, "%s", files.v[i]);
        buf_printf(&text, "\n%s %lld %lld.%09ld", files.v[i], (long long)st.st_size,
                   (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    }
    sha256_of(text.data, text.len, key);
    snprintf(ret, size, "%.16s-%s-%s", key, m->kind->name, DATASET_FILE(m->test));
    return r;
}

static int open_cached(const struct dataset_making *m, struct images *ret, struct err *err) {
    char name[128];
    int r = name_of(m, name, sizeof(name), err);
    if (r < 0)
        return r;
    FILE_CLOSE int fd = cache_open(name, make, m, err);
    return fd < 0 ? fd : images_open(fd, name, ret, err);
}

/* Returns whether prepare has left the set there: 1, 0, or an error. */
static int open_prepared(const char *dir, bool test, struct images *ret, struct err *err) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", dir, DATASET_FILE(test));
    if (!file_exists(path))
        return 0;
    FILE_CLOSE int fd = file_open_plain(path, err);
    int r = fd < 0 ? fd : images_open(fd, path, ret, err);
    return r < 0 ? r : 1;
}

static int open_pictures(const struct dataset_kind *k, const struct dataset_place *at,
                         struct images *ret, struct err *err) {
    struct images_shape shape = k->shape;
    shape.side = at->side;
    int r = k->classes(at, &shape, err);
    return r == 0 ? k->pictures(at, &shape, ret, err) : r;
}

static int open_set(const struct dataset_kind *k, const struct dataset_place *at, bool test,
                    bool unpacked, struct images *ret, struct err *err) {
    const struct dataset_making m = {.kind = k, .at = *at, .test = test};
    int r = *at->dir ? open_prepared(at->dir, test, ret, err) : 0;
    if (r == 0 && unpacked && k->pictures)
        return open_pictures(k, at, ret, err);
    if (r == 0)
        r = open_cached(&m, ret, err);
    return r < 0 ? r : 0;
}

static int open_sets(const struct dataset_kind *k, const struct dataset_place *at, int sets,
                     struct dataset *d, struct err *err) {
    int r = 0;
    if (sets & DATASET_TRAIN)
        r = open_set(k, at, false, sets & DATASET_UNPACKED, &d->train, err);
    if (r == 0 && (sets & DATASET_TEST))
        r = open_set(k, at, true, false, &d->test, err);
    if (r == 0 && (sets & DATASET_TRAIN) && (sets & DATASET_TEST) &&
        (d->train.bytes != d->test.bytes || d->train.shape.classes != d->test.shape.classes))
        r = err_say(err, -EBADMSG,
                    "%s: its training images are %dx%dx%d of %d classes, its test images %dx%dx%d "
                    "of %d: prepare both again",
                    at->dir, d->train.shape.channels, d->train.shape.side, d->train.shape.side,
                    d->train.shape.classes, d->test.shape.channels, d->test.shape.side,
                    d->test.shape.side, d->test.shape.classes);
    return r;
}

static void say_remedy(const struct dataset_kind *k, struct err *err) {
    const struct err what = *err;
    err_say(err, what.code,
            "%s: %s, name where it is by --data-dir, or ask for made-up images by "
            "--dataset=generated (RANKTRAIN_DATASET=generated for programs that you do not start)",
            what.msg, k->remedy);
}

int dataset_open(const struct dataset_kind *k, const char *dir, int side, int sets,
                 struct dataset *ret, struct err *err) {
    struct dataset d = {.kind = k};
    const struct dataset_place at = {.dir = k->dir && !*k->dir ? ""
                                            : dir              ? dir
                                                               : k->dir,
                                     .side = k->shape.side ? 0
                                             : side        ? side
                                                           : SIDE};
    if (!at.dir)
        return err_say(err, -ENOENT, "--dataset=%s needs --data-dir: %s", k->name, k->remedy);
    int r = open_sets(k, &at, sets, &d, err);
    if (r == -ENOENT && k->remedy)
        say_remedy(k, err);
    if (r < 0) {
        dataset_close(&d);
        return r;
    }
    *ret = d;
    return 0;
}

void dataset_close(struct dataset *d) {
    images_close(&d->train);
    images_close(&d->test);
}
