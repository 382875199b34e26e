/* idx: the files that MNIST and Fashion-MNIST come in, packed by gzip or not.
 *
 * Big-endian 32-bit words: 0x00000803, images, rows, columns, then one byte per pixel; labels:
 * 0x00000801, labels, then one byte each. */
#pragma once

#include "scenarios/jobs/ranktrain/data/dataset_kind.h"

#define IDX_FILES                                                                                  \
    {                                                                                              \
        "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",            \
            "t10k-labels-idx1-ubyte"                                                               \
    }

enum { IDX_SIDE = 28, IDX_PIXELS = IDX_SIDE * IDX_SIDE, IDX_CLASSES = 10 };

/* For dataset_kind. */
int idx_list(const struct dataset_place *at, bool test, struct texts *ret, struct err *err);
int idx_pack(const struct dataset_place *at, bool test, const struct texts *files,
             struct packing *p, struct err *err);
