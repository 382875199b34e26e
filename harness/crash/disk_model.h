/* disk_model: what a file system promises to have after its machine has died, one row each. What it
 * does not promise may be lost, and any of it may be there: disk_model.c says whose word that is. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

enum size_rule {
    SIZE_BY_ITSELF,   /* a file may have grown without the bytes: zeros; or not have grown */
    SIZE_AFTER_BYTES, /* it has grown no further than bytes that are there */
    SIZE_IS_BYTES,    /* it has grown as far as bytes are there: neither without the other */
};

struct disk_model {
    const char *name; /* as --fs has it */
    const char *summary;
    bool journal;          /* names and sizes that were set are kept in order: a prefix of them */
    bool at_once;          /* names and sizes that were set are there when the call has returned */
    bool rename_flushes;   /* a rename over a file is not there before the bytes of the new one */
    bool truncate_flushes; /* what is closed after it was cut to nothing: later names wait for it */
    bool close_flushes;    /* close is a sync of the bytes that its node has written */
    bool by_node;          /* the disk is elsewhere: a node loses what it has written alone */
    enum size_rule size;
};

enum { DISK_MODELS_N = 4, DISK_MODELS_MAX = 8 };
extern const struct disk_model disk_models[DISK_MODELS_N];

/* A set of rows is a number with bit i for row i. */
enum { DISK_MODELS_ALL = (1 << DISK_MODELS_N) - 1 };
/* ext4, xfs and posix: disk_model.c says why. */
extern const unsigned disk_models_default;
/* "ext4,xfs" to a set. -EINVAL: the sentence names those that there are. */
int disk_models_parse(const char *names, unsigned *ret, struct err *err);
