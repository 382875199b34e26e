/* idx: labelled images from the files of Fashion-MNIST, mapped, never copied.
 *
 * The format (of MNIST): big-endian 32-bit words: 0x00000803, images, rows, columns, then one byte
 * per pixel; labels: 0x00000801, labels, then one byte each. */
#pragma once

#include "base/err.h"

#include <stdint.h>
#include <stddef.h>

enum {
    IDX_SIDE = 28,
    IDX_PIXELS = IDX_SIDE * IDX_SIDE,
    IDX_CLASSES = 10,
    IDX_IMAGES_HEADER = 16, /* bytes */
    IDX_LABELS_HEADER = 8
};

struct idx {
    uint32_t count;
    const uint8_t *images, *labels; /* behind the headers */
    void *map[2];
    size_t map_bytes[2];
};

/* Maps both files; the descriptors stay the caller's and may be closed. Refuses files whose header,
 * length or labels are wrong: -EBADMSG. */
int idx_map(int images_fd, int labels_fd, struct idx *ret, struct err *err);
void idx_unmap(struct idx *d);

void idx_put_header(uint8_t *ret, int dimensions, uint32_t count); /* 3: images, 1: labels */

static inline const uint8_t *idx_image(const struct idx *d, uint32_t i) {
    return d->images + (size_t)i * IDX_PIXELS;
}

/* Its number, by where it lies. */
static inline uint32_t idx_number(const struct idx *d, const uint8_t *image) {
    return (uint32_t)((size_t)(image - d->images) / IDX_PIXELS);
}

static inline uint8_t idx_label(const struct idx *d, uint32_t i) {
    return d->labels[i];
}
