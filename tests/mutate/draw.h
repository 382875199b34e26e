/* draw: which points a seed takes.
 *
 * Each room gets its part of the sample by how many points it has, and none gets nothing. Within a room the operators take
 * turns, each with its points in the order of the seed. That order follows from the seed and from the point's identity
 * alone: what is changed elsewhere changes no draw. */
#pragma once

#include "tests/mutate/point.h"

#include <stdint.h>
#include <stdio.h>

struct draw_spec {
    uint64_t seed;
    int sample;
    const char *only; /* this room; NULL: all */
};

/* Prints "ROOM<TAB>QUOTA<TAB>FILE<TAB>LINE<TAB>IDENTITY" of every point: those of a room in the order in which they are taken,
 * so that behind the quota come those that replace what does not count. */
void draw_print(const struct points *p, const struct draw_spec *spec, FILE *out);
