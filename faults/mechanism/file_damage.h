/* file_damage: what lies on a disk is no more what was written there. Everything is done within a
 * directory that is held, no link is followed, and a file that has a second name, which may be
 * anywhere, is left alone (-EMLINK). Paths are relative to the directory. 0 or a -errno. */
#pragma once

#include "base/sys/folder.h"

#include <stdint.h>

/* It ends so early; -EINVAL: it is no longer than that already. */
int file_truncate(const struct folder *in, const char *path, int64_t bytes, struct err *err);
/* One bit of one byte; the times that it was changed and read stay. -EINVAL: it is not so long. */
int file_flip(const struct folder *in, const char *path, int64_t offset, int bit, struct err *err);
/* With all that is in it. */
int file_delete(const struct folder *in, const char *path, struct err *err);
/* Each gets the name of the other, at once. */
int file_exchange(const struct folder *in, const char *path, const char *other, struct err *err);
/* A copy of what lies elsewhere takes the place of what goes by the path, at once: of a file, a
 * directory or a link, with at most FILE_COPY_MAX bytes. */
#define FILE_COPY_MAX ((int64_t)4 << 30)
int file_replace(const struct folder *in, const char *path, const struct folder *from,
                 const char *source, struct err *err);

/* ---- what points at another ---- */

/* The text of a pointer: a link, or a file of at most 4 KiB; without the line's end. */
int file_pointer_read(const struct folder *in, const char *path, char *ret, size_t size,
                      struct err *err);
/* It says this from now on, at once; a file keeps its line's end. */
int file_pointer_write(const struct folder *in, const char *path, const char *text,
                       struct err *err);
/* The same text with the number of the next older one that lies there, beside the pointer or where
 * its text leads; missing: with the next number of which nothing lies there. -EINVAL: there is no
 * number in it; -ENOENT: nothing older is there. */
int file_pointer_other(const struct folder *in, const char *path, const char *text, bool missing,
                       char *ret, size_t size, struct err *err);
