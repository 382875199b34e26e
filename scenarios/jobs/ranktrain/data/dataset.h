/* dataset: the training and the test images of one kind of data (dataset_kind.h).
 *
 * A directory that `ranktrain prepare` has filled is mapped as it is. Any other is read once per
 * user and what it holds is kept in the cache in the same form, under a name that stands for the
 * sources' names, sizes and times. */
#pragma once

#include "scenarios/jobs/ranktrain/data/images.h"

#include "base/err.h"

#include <stdbool.h>

struct dataset_kind;
struct dataset_place;

struct dataset {
    const struct dataset_kind *kind;
    struct images train, test;
};

/* DATASET_UNPACKED: training images in files of their own need not be packed, as loaders decode
 * them. */
enum { DATASET_TRAIN = 1, DATASET_TEST = 2, DATASET_UNPACKED = 4 };

/* By its name; NULL and a sentence that lists them. */
const struct dataset_kind *dataset_find(const char *name, struct err *err);

/* The name of what lies in a directory (NULL: none was said), where nobody has said what it is:
 * fashion-mnist unless it is clearly another. */
const char *dataset_guess(const char *dir);

/* "cifar10, fashion-mnist, ..." */
void dataset_names(char *ret, size_t size);

/* What prepare calls the files of a set. */
#define DATASET_FILE(test) ((test) ? "test.images" : "train.images")

/* dir NULL: where it is usually; side 0: 32, for images that have no common size. sets: which
 * shall be opened, the other is empty then. Returns 0; -ENOENT and what to do when files are not
 * there; -EBADMSG with file and byte when they are not what they should be. */
int dataset_open(const struct dataset_kind *k, const char *dir, int side, int sets,
                 struct dataset *ret, struct err *err);
void dataset_close(struct dataset *d);

/* The images of a set as their files have them, into fd. */
int dataset_pack(const struct dataset_kind *k, const struct dataset_place *at, bool test,
                 uint32_t part, uint32_t parts, int fd, uint32_t *ret_count, struct err *err);
