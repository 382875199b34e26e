/* dataset_kind: one kind of data that ranktrain can be trained on. A file of its own for each, which
 * ends in one const struct, and a line in DATASETS, in alphabetical order. */
#pragma once

#include "scenarios/jobs/ranktrain/data/packing.h"

#include "base/texts.h"

/* What is asked for. */
struct dataset_place {
    const char *dir; /* where the files are */
    int side;        /* of images that have a size of their own each */
};

enum { DATASET_SUMS = 4 };

struct dataset_file {
    const char *name, *sha256;
};

struct dataset_kind {
    const char *name, *summary;
    const char *dir;    /* where it is looked for unless said; NULL: must be said, "": nowhere */
    const char *url;    /* where it is fetched from unless said; NULL: nowhere */
    const char *remedy; /* what to do where it is not there */
    struct images_shape shape; /* side 0: the place's; classes 0: the folders' */

    /* The files of the training or the test images, in order. -ENOENT: one is not there, and the
     * sentence says which. */
    int (*list)(const struct dataset_place *at, bool test, struct texts *ret, struct err *err);

    /* Adds all images of those files, in order. */
    int (*pack)(const struct dataset_place *at, bool test, const struct texts *files,
                struct packing *p, struct err *err);

    /* NULL, or finds out the classes: writes shape->classes. */
    int (*classes)(const struct dataset_place *at, struct images_shape *shape, struct err *err);

    /* NULL, or finds the training images as files that are decoded one by one. */
    int (*pictures)(const struct dataset_place *at, const struct images_shape *shape,
                    struct images *ret, struct err *err);

    /* What is fetched: names below the URL, and what they hash to; those packed by gzip unpacked,
     * but for archives (.tar.gz). */
    struct dataset_file files[DATASET_SUMS + 1];
};

#define DATASETS(X) X(cifar10) X(fashion_mnist) X(folder) X(generated) X(mnist)

#define DATASET_DECLARE(name) extern const struct dataset_kind dataset_##name;
DATASETS(DATASET_DECLARE)
#undef DATASET_DECLARE
