/* files: the scenario files that a command line names: as they are, all of a folder and what lies
 * below it, or those of a suite. */
#pragma once

#include "agent/base/arena.h"
#include "harness/verb.h"

#include <stddef.h>

enum { FILES_MAX = 1000 };

struct scenario_files {
    const char *v[FILES_MAX];
    size_t n;
    struct arena arena; /* owns what is in no argument */
};

/* Returns 0, or an exit code after saying on stderr, for the verb, what is wrong. path must outlive
 * the list. */
int files_add(struct scenario_files *f, const struct verb *verb, const char *path);
void files_fini(struct scenario_files *f);
