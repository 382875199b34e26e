/* pipeline: a command of ours as a step of a CI server (--ci): the files that it reads, the summary and
 * annotations where it has them, nothing that needs a terminal, and no secret in any of it. */
#pragma once

#include "base/arena.h"
#include "base/hidden.h"
#include "base/texts.h"
#include "harness/ci/runner.h"
#include "reports/batch/batch.h"

struct pipeline {
    const struct runner *runner; /* NULL: none was asked for, and nothing below does anything */
    const char *out;             /* where the files go */
    struct hidden hidden;
    struct texts names;  /* of the variables whose values are hidden */
    struct texts before; /* what lay in out before */
    struct arena arena;  /* of v */
    struct judged *v;
    size_t n;
    int64_t began_ns;
    char resume[40];   /* the line by which the runner obeys again; "": it obeys */
    struct err failed; /* the first that could not be covered or read */
};

/* Before anything is printed or run. out is the caller's. */
void pipeline_begin(struct pipeline *s, const char *out);
/* The same for runs that others have recorded: their directories are not new. */
void pipeline_take(struct pipeline *s, const char *dir, bool programs);
/* Takes every run directory that has come into the folder since then; in the order of their names'
 * times. programs: the scenario's own checks are asked again. */
void pipeline_take_new(struct pipeline *s, const char *folder, bool programs);
/* A run that was asked for and has no directory. The texts must outlive it. */
void pipeline_missing(struct pipeline *s, const char *name, const char *file, int exit_code,
                      const char *why);
/* How many runs of this name have been taken with their directory. */
size_t pipeline_count(const struct pipeline *s, const char *name);
/* Writes everything. Returns the code; where it is 0 and a file could not be written or a secret not
 * be covered, EXIT_BROKEN, after saying so on stderr. Frees. */
int pipeline_end(struct pipeline *s, const char *verb, const char *title, int code);
