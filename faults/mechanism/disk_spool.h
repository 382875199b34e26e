/* disk_spool: what goes to the ends of two files, the bytes of a record and its lines, put there by a
 * thread of its own, while whoever records goes on: a program waits for it.
 *
 * It is held in a few parts of memory that are used again and again: a page that is touched first takes
 * longer than to fill it, and more than some MiB fall out of the processor's cache. One thread fills, by
 * these calls; they wait only where all parts are full, until the disk has taken one. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { DISK_SPOOL_PART = 1 << 20 };

struct disk_spool;

/* The files stay the caller's, and are to be open until disk_spool_free. 0 or a -errno. */
int disk_spool_new(struct disk_spool **ret, int bytes, int lines, struct err *err);

/* Where the next size bytes may be put. NULL: more than DISK_SPOOL_PART. */
unsigned char *disk_spool_room(struct disk_spool *s, size_t size);
/* They have been put there, or are copied. */
void disk_spool_put(struct disk_spool *s, const unsigned char *bytes, size_t size);
/* Of what has been put: its line goes to the disk after the bytes. */
void disk_spool_line(struct disk_spool *s, const struct buf *line);

bool disk_spool_holds(
    const struct disk_spool *s);            /* something that the thread has not been given */
void disk_spool_give(struct disk_spool *s); /* does not wait for the disk */
/* Waits until all is on the disk. 0 or what went wrong first, a -errno: what came later is not there. */
int disk_spool_drain(struct disk_spool *s);
int disk_spool_code(struct disk_spool *s); /* what has gone wrong by now */
struct disk_spool *
disk_spool_free(struct disk_spool *s); /* drains; NULL is allowed; returns NULL */
