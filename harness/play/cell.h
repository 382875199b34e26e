/* cell: one run of a comparison, in a process of its own: `rankquake run FILE ...`. */
#pragma once

#include "base/arena.h"
#include "reports/comparison/comparison.h"

struct cell_spec {
    const char *file;
    const char *dir, *name;  /* the run directory is made in dir/name, what is printed kept there */
    const char *seed;        /* NULL: the file's */
    const char *const *sets; /* NULL-ended */
    bool fresh;
};

/* Runs it to its end, and fills the cell: from the run, judged again, or with why there is none. */
void cell_run(const struct cell_spec *s, struct arena *a, struct comparison_cell *ret);

/* The only run directory in a folder, its name in the arena; NULL: there is none. */
const char *cell_find_run(struct arena *a, const char *out);

/* The sentence with which `rankquake run` gave up, out of all that it printed. */
const char *cell_reason(struct arena *a, const char *printed, const char *file);

/* Writes one rendering into dir; says what is wrong on stderr and returns a -errno. */
int cell_write_report(const char *dir, const struct comparison_report *r,
                      const struct comparison *c, const struct report_style *style);
