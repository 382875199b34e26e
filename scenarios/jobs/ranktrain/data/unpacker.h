/* unpacker: a file of a data set read from front to back, packed by gzip or not. */
#pragma once

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unpacker {
    void *gz;
    char path[PATH_MAX];
    uint64_t at; /* bytes taken, unpacked */
};

int unpacker_open(struct unpacker *ret, const char *path, struct err *err);
void unpacker_close(struct unpacker *s); /* of one that is not open, too */

/* Exactly n bytes. -EBADMSG: there are fewer, or gzip's checksum is wrong; the sentence names the
 * file and the byte. */
int unpacker_take(struct unpacker *s, void *ret, size_t n, struct err *err);
/* As many as there are, at most n; *ret_n 0: it has ended well. */
int unpacker_some(struct unpacker *s, void *ret, size_t n, size_t *ret_n, struct err *err);
/* Nothing may follow. */
int unpacker_end(struct unpacker *s, struct err *err);
