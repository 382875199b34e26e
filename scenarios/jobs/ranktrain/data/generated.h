/* generated: images of the shape, number and format of Fashion-MNIST, for machines without it.
 *
 * Each class is a pattern of 7x7 greys, enlarged; a sample is its class's pattern moved by up to
 * three pixels, darkened and covered with noise. Made of integers: the same bytes everywhere. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

enum { GENERATED_VERSION = 1, GENERATED_TRAIN = 60000, GENERATED_TEST = 10000 };

struct generated_data {
    bool test, labels;
};

/* Writes the IDX file that arg, a struct generated_data, asks for. A cache_make_fn. */
int generated_write(int fd, const void *arg, struct err *err);
