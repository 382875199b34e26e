/* shard: one part of several of what is to be run, for as many machines side by side. The split follows
 * from the scenarios and from a file of times that all are given, and from nothing that one machine
 * knows alone: so each scenario is in one part. Which split it was is told by a name, so that a
 * difference shows. */
#pragma once

#include "harness/play/selection.h"

#include <stdio.h>

struct shard {
    int64_t part, parts; /* from 1; 0: all of it */
    size_t kept, all;
    struct texts times; /* lines of the file */
    char split[17];     /* of what all parts must have in common */
};

/* "MS<tab>NAME<tab>SETS", a line for each scenario, as rankquake cache times prints them. */
void shard_put_times(const struct selection *s, struct buf *out);
/* The same read back; -EINVAL with the line that is none. */
int shard_read_times(struct shard *h, const char *path, struct err *err);

/* "2/5"; false: it is none. */
bool shard_read(const char *text, struct shard *ret);
/* Leaves this part of the selection alone, and says on out what it is and which times were guessed.
 * The longest goes first to the part that has the least; runs: how often each is run. */
void shard_keep(struct shard *h, struct selection *s,
                int64_t (*runs)(const void *arg, const struct selected *l), const void *arg,
                FILE *out);
void shard_fini(struct shard *h);
