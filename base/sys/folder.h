/* folder: what lies in a directory that others may have prepared, or write into at the same time: a
 * run directory that somebody sent, one that a job in its node shares, a cache.
 *
 * It is held by a descriptor, so that nobody can put another in its place. Names are relative to it
 * and may have several parts ("logs/n0/agent.log"). No part is followed where it is a symbolic link
 * (-ELOOP), nothing is opened that is no plain file (-EINVAL), and no name leads out by "..": the
 * error is a sentence that names what is in the way. Other errors are those of the call. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/texts.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct folder {
    int fd;
    char *path; /* by which it was opened, for people and for programs that are told of it */
};

#define FOLDER_NONE ((struct folder){.fd = -1})

/* Links on the way to path are followed: it is the caller's own. */
int folder_open(struct folder *ret, const char *path, struct err *err);
/* A directory in it, held for itself. */
int folder_enter(struct folder *ret, const struct folder *f, const char *name, struct err *err);
/* The directory in it that holds what goes by the name, and which part of the name that is there. */
int folder_enter_parent(struct folder *ret, const struct folder *f, const char *name,
                        const char **ret_last, struct err *err);
void folder_close(struct folder *f); /* also of FOLDER_NONE, and twice */

/* Whether anything goes by this name, be it a link. */
bool folder_has(const struct folder *f, const char *name);
bool folder_has_directory(const struct folder *f, const char *name);

/* Opens for reading a plain file that is there. Returns a descriptor. */
int folder_open_file(const struct folder *f, const char *name, struct err *err);
/* The same of a file that somebody writes and that is not to grow for ever: for writing, too, where
 * that is allowed and it has no second name. */
int folder_open_growing(const struct folder *f, const char *name, struct err *err);
/* Finds whatever it is, but a link, without opening it (O_PATH). Returns a descriptor. */
int folder_find(const struct folder *f, const char *name, struct err *err);
/* As file_read and file_read_last. */
int folder_read(const struct folder *f, const char *name, size_t max, struct buf *out,
                struct err *err);
int folder_read_last(const struct folder *f, const char *name, int lines, size_t max,
                     struct buf *out, struct err *err);
/* For folder_list: what ls shows, names without a dot in front. */
int folder_is_shown(const struct dirent *e);
/* The names in it, as scandir finds them, sorted, added to ret. Returns 0 or a -errno. */
int folder_list(const struct folder *f, const char *name, int (*wanted)(const struct dirent *),
                struct texts *ret, struct err *err);

/* A new file takes the name, so that nothing is written into one that was there, whoever else holds
 * it. Returns a descriptor to write to. */
int folder_create(const struct folder *f, const char *name, struct err *err);
/* Writes to the end of a plain file, which is made when it is missing. One that has a second name
 * elsewhere is refused (-EMLINK). Returns a descriptor. */
int folder_append(const struct folder *f, const char *name, struct err *err);
/* A new file with this content takes the name: a reader sees the old one or the new one. Until then
 * it is called NAME.PID.BITS.tmp, and stays so where the writer is killed. */
int folder_write(const struct folder *f, const char *name, const void *data, size_t len,
                 struct err *err);
/* The same, and kept over a power cut. */
int folder_write_synced(const struct folder *f, const char *name, const void *data, size_t len,
                        struct err *err);

/* mkdir -p; 0 also when it was there. */
int folder_make(const struct folder *f, const char *name, mode_t mode, struct err *err);
/* rm -rf; 0 also when it was not there. A link that lies deeper is removed and not followed, one
 * that goes by this very name is refused. */
int folder_remove(const struct folder *f, const char *name, struct err *err);
/* A file, a link or whatever else is no directory; what is not there is no error. */
void folder_unlink(const struct folder *f, const char *name);
