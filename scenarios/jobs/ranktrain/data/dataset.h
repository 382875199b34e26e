/* dataset: Fashion-MNIST as the Debian package dataset-fashion-mnist installs it, unpacked once
 * into the cache; where it is missing, generated images of the same shape and number, which a
 * network can learn as well. */
#pragma once

#include "scenarios/jobs/ranktrain/data/idx.h"

#include "base/err.h"

#include <stdbool.h>

struct dataset {
    struct idx train, test;
    bool generated;
};

/* Returns 0; a directory that lacks the files is no error (generated), a file that cannot be read
 * or is damaged is one. */
int dataset_open(const char *dir, struct dataset *ret, struct err *err);
void dataset_close(struct dataset *d);
