/* layer: what a job writes into the directory that the harness was started in, undone at the end.
 *
 * An overlay is mounted on that directory, in a mount namespace that the harness moves into; nodes
 * that are made afterwards see it too, all the same one, as they would see a file system that a
 * cluster shares. So each run finds the directory as the first one did, and the caller's stays as
 * it is. Where nothing can be mounted a copy serves. */
#pragma once

#include "base/err.h"

struct layer;

/* scratch: where what is written lies meanwhile, if its file system can carry it (else in memory);
 * dir, the run directory, stays the real one wherever it lies. Both absolute. -ENOTSUP where it
 * cannot be, with the reason. */
int layer_begin(const char *scratch, const char *dir, struct layer **ret, struct err *err);
/* The same where nothing can be mounted: the job runs in a copy of the directory, in scratch, and
 * so does the harness. -ENOTSUP when it is too much to be copied. What a path from the root or
 * through
 * .. leads to is not in it. */
int layer_copy(const char *scratch, const char *dir, struct layer **ret, struct err *err);
/* Takes it away again; NULL is allowed; returns NULL. What was written is the caller's to remove.
 */
struct layer *layer_end(struct layer *l);

/* Tries it in a child process, and leaves nothing. scratch: any directory of the file system in
 * question, which exists. */
int layer_check(const char *scratch, struct err *err);

/* layer_copy.c: the current directory, less .git and the folder `runs` in it, into `to`. */
int layer_copy_tree(const char *to, const char *runs, struct err *err);
