/* images: labelled images in the form in which they are trained on, mapped and never copied.
 *
 * One file holds a set: a header, the pixels of all images (a byte each, channel by channel), then a
 * label and a checksum for each image. It is written once, by data/packing.h, from whatever the
 * images came in, and appears whole or not at all. Header, labels and checksums are checked when it
 * is opened; an image when it is read, so that a disk that has rotted since is noticed. */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    IMAGES_CHANNELS = 3,  /* at most */
    IMAGES_CLASSES = 256, /* at most */
    IMAGES_SIDE = 1024,   /* at most */
    IMAGES_HEADER = 4096, /* bytes; the pixels begin behind it */
    IMAGES_VERSION = 2
};

struct loaders;
struct pictures;

struct images_shape {
    int channels, side, classes;
    float mean[IMAGES_CHANNELS], deviation[IMAGES_CHANNELS]; /* of a pixel as a share of 255 */
};

/* What a file begins with; numbers as the machine has them. */
struct images_header {
    char magic[8];
    uint32_t version, count;
    struct images_shape shape;
    uint32_t part, parts; /* it holds every parts-th image of a set, from number part on */
    uint32_t whole;       /* images of the set */
    uint32_t tail;        /* CRC-32 of the labels and the checksums behind the pixels */
    uint32_t crc;         /* of all before it */
};

struct images {
    struct images_shape shape;
    uint32_t count, part, parts, whole;
    uint32_t tail;                  /* tells sets apart */
    size_t bytes;                   /* of an image */
    const uint8_t *pixels, *labels; /* one after another */
    const uint8_t *checksums;       /* 32 bits each; NULL: there are none */
    const char *path;               /* for messages */
    const struct loaders *ahead;    /* who has read images already; NULL: nobody */
    struct pictures *pictures;      /* decoded when they are read; NULL: they lie in pixels */
    void *map;
    size_t map_bytes;
};

/* Maps the file; the descriptor stays the caller's and may be closed. -EBADMSG: it is no such file,
 * cut short or damaged, and the sentence has the path and the offset. */
int images_open(int fd, const char *path, struct images *ret, struct err *err);
void images_close(struct images *d);

/* Where an image lies, once its checksum has been found right; NULL: it is damaged. */
const uint8_t *images_read(const struct images *d, uint32_t i, struct err *err);

static inline uint8_t images_label(const struct images *d, uint32_t i) {
    return d->labels[i];
}

/* Its number in the whole set, by where it lies. */
uint64_t images_number(const struct images *d, const uint8_t *image);

static inline size_t images_bytes(const struct images_shape *s) {
    return (size_t)s->channels * (size_t)s->side * (size_t)s->side;
}

/* Labels and what fills them up to a multiple of four. */
static inline size_t images_labels_bytes(uint32_t count) {
    return ((size_t)count + 3) / 4 * 4;
}
