/* files: the scenario files that a command line names: as they are, all of a folder and what lies
 * below it, those of a suite, or by the name of one that came with the program (library.h). Links in a folder that lead to another are not followed. */
#pragma once

#include "base/arena.h"
#include "harness/verb.h"

#include <stdbool.h>
#include <stddef.h>

enum { FILES_MAX = 1000 };

struct scenario_files {
    const char *v[FILES_MAX];
    const char *within[FILES_MAX]; /* for their diagnostics; NULL where they are trusted */
    size_t n;
    bool trusted;       /* set by the caller: they may lead anywhere */
    struct arena arena; /* owns what is in no argument */
};

/* Returns 0, or an exit code after saying on stderr, for the verb, what is wrong. path must outlive
 * the list. */
int files_add(struct scenario_files *f, const struct verb *verb, const char *path);
void files_fini(struct scenario_files *f);
