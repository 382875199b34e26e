/* pictures: images that lie in files of their own, JPEG or PNG, and are decoded when they are read:
 * by loaders (loaders.h), each for itself, and never in a rank. */
#pragma once

#include "scenarios/jobs/ranktrain/data/images.h"

#include "base/texts.h"

struct pictures {
    struct texts paths; /* in the order of their numbers */
    uint8_t *labels;
    uint8_t *pixels; /* of the one that was read last */
    int side;
};

/* Takes paths over; labels are copied. Every rank gets the same tail for the same files, wherever
 * they lie: it stands for their names, classes and lengths. */
int pictures_open(struct texts *paths, const uint8_t *labels, const struct images_shape *shape,
                  const char *dir, struct images *ret, struct err *err);
void pictures_free(struct pictures *p); /* NULL is allowed */

/* Valid until another one is read. NULL: it is damaged, and the sentence names the file. */
const uint8_t *pictures_read(struct pictures *p, uint32_t i, struct err *err);
