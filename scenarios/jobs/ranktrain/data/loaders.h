/* loaders: processes that read the images of the steps to come, while the rank computes.
 *
 * They hand them over in memory that they share with the rank, a slot for each step that is read
 * ahead; a loader is told by a socket what to read and tells by a pipe that it has. They end with
 * the rank, whatever becomes of it, and one that ends before is an error of the rank. */
#pragma once

#include "scenarios/jobs/ranktrain/data/images.h"

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct loaders;

struct loaders_job {
    const struct images *images;
    uint64_t seed;
    uint32_t batch; /* samples of a step */
    uint32_t parts; /* of the data, of which each rank has one; 1: all have all of it */
    bool drop_last;
    const uint32_t *places; /* which of a step are this rank's */
    uint32_t places_n;
    int loaders;
    uint64_t last_step;
};

/* Before the process has threads. What job points to, but for images, is copied. */
int loaders_start(const struct loaders_job *job, struct loaders **ret, struct err *err);

/* Waits until the images of a step are there; from here on images_read of its samples gives them.
 * wake_fd: readable, then -ECANCELED. -ECHILD: a loader has ended, and the sentence says how;
 * -EBADMSG: an image is damaged. */
int loaders_take(struct loaders *l, uint64_t step, int wake_fd, struct err *err);

void loaders_end(struct loaders *l); /* NULL is allowed */

/* For images.c: where the step's image lies, or NULL; and back. */
const uint8_t *loaders_find(const struct loaders *l, uint32_t sample);
bool loaders_number(const struct loaders *l, const uint8_t *image, uint32_t *ret_sample);
