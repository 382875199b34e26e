/* checkpoint_dir: the files and names of checkpoints; what is in them is checkpoint.c's concern. */
#pragma once

#include "scenarios/jobs/ranktrain/manifest.h"

#include "base/err.h"

#include <dirent.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

enum { CHECKPOINT_DIR_NAME = 32 };

/* The nearest directory at or above a path that is there; "." or "/" when none of its parts is. Returns
 * how many of the path's last parts are missing. */
int checkpoint_dir_above(const char *path, char ret[PATH_MAX]);

/* "step-00000025" */
void checkpoint_dir_name(int64_t step, char ret[CHECKPOINT_DIR_NAME]);

/* Opens a directory below dir, or "." itself, to be read from its beginning; no link. NULL: errno says why
 * not. The caller's, for file_close_dir. */
DIR *checkpoint_dir_list(int dir, const char *name);

/* The steps that have a directory of the final name, newest first; free(). Returns how many, or a
 * -errno. */
int checkpoint_dir_steps(int dir, int64_t **ret, struct err *err);

/* Reads a file of a checkpoint, at most max bytes. */
int checkpoint_dir_read(int dir, int64_t step, const char *file, size_t max, struct buf *ret,
                        struct err *err);

/* Reads only the manifest and holds its step against the name. */
int checkpoint_dir_manifest(int dir, int64_t step, struct manifest *ret, struct err *err);

/* Takes a directory with plain files in it away, if it is there. */
void checkpoint_dir_remove(int dir, const char *name);

/* Takes away what interrupted writers of this and earlier rounds have left. */
void checkpoint_dir_sweep(int dir, int64_t round);
