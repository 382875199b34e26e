/* packing: writes a file of images (images.h), one image after another. */
#pragma once

#include "scenarios/jobs/ranktrain/data/images.h"

#include "base/buf.h"

#include <stdbool.h>

struct packing {
    struct images_header header;
    int fd;
    uint32_t seen; /* images that were given; those of the part are written */
    struct buf pixels, labels, checksums;
};

/* fd is empty and stays the caller's. Of the images that will be given those are written whose
 * number is part + k * parts. */
void packing_begin(struct packing *p, int fd, const struct images_shape *s, uint32_t part,
                   uint32_t parts);
/* Whether the next image is one of the part: who has trouble to make it may leave it out. */
bool packing_wants(const struct packing *p);
void packing_skip(struct packing *p);
int packing_add(struct packing *p, const uint8_t *pixels, uint8_t label, struct err *err);
/* Ends the file; fsync is the caller's. */
int packing_end(struct packing *p, struct err *err);
void packing_fini(struct packing *p);
