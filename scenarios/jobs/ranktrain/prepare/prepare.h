/* prepare: `ranktrain prepare` brings a dataset to where it is trained on, once: it is fetched, held
 * against the sums that are known of it, split, made of one size and written in the form in which it
 * is mapped (data/images.h). Whoever looks meanwhile, or after it was killed, sees all of it or
 * nothing. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct prepare {
    const char *dataset;
    const char *from; /* a directory or a URL; NULL: where it usually is */
    const char *to;   /* a directory, made if need be */
    int side;         /* of images that have no common size; 0: 32 */
    uint32_t part, parts;
    const char *cacert; /* of https: a file; NULL or "": the system's */
    bool folders;       /* as class folders of PNG files, for other programs */
    uint32_t samples;   /* of folders: the first of each set; 0: all */
    bool unverified;    /* other files than the known ones are wanted */
    bool help;
};

/* argv[0] is "prepare". Returns 0, or -EINVAL and a sentence. Strings stay argv's. */
int prepare_parse(int argc, char **argv, struct prepare *ret, struct err *err);

/* Prints on stdout what was done. Several at once for the same directory wait for one another, and
 * all but the first find it done. */
int prepare_run(const struct prepare *p, struct err *err);

void prepare_help(void);
