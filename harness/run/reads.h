/* reads: what a job reads of the caller's own tree, as its control run has shown: reads.json in the run
 * directory, and beside the result in the cache. The tree is the git repository that the harness was
 * started in, else the directory. */
#pragma once

#include "base/json.h"
#include "base/sys/folder.h"

#include <limits.h>
#include <stdbool.h>

#define READS_FILE "reads.json"
enum { READS_VERSION = 1, READS_MAX = 64 << 20 };

struct reads_tree {
    char top[PATH_MAX];  /* absolute, without links */
    char here[PATH_MAX]; /* the working directory */
    bool repository;
};

/* 0, or -errno: the working directory has no name. */
int reads_tree_find(struct reads_tree *ret, struct err *err);

/* By which a file below top is known again in another checkout: its content's hash, and of a large one
 * size and time; of a folder, "folder"; "" when there is none. */
enum { READS_MARK = 80 };
void reads_mark(const char *top, const char *path, char ret[READS_MARK]);

/* From a control run's directory into its folder of the cache. */
int reads_keep(const struct folder *run, const char *cache, struct err *err);
/* NULL: there is none. `unknown` says why it tells nothing; else `files` (path, and the mark if the job
 * does not write it), `folders` of which something was read (path, names) and `links`. */
const struct json *reads_load(const char *cache, struct arena *a);
