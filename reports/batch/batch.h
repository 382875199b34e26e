/* batch: all runs of one command line, in one file for a CI server. One file per rendering, one const
 * struct, one line below. */
#pragma once

#include "reports/judged.h"

struct batch {
    const char *title;      /* "run scenarios/smoke.yaml" */
    const struct judged *v; /* in the order in which they were made */
    size_t n;
    int exit_code; /* of the command */
    double took_s;
    const char *const *hidden; /* variables whose values are covered, NULL-ended */
};

struct batch_report {
    const char *name, *summary;
    const char *file; /* its name in --out; NULL: only printed */
    void (*render)(const struct batch *b, struct buf *out);
};

#define BATCH_REPORTS(X)                                                                           \
    X(ctrf)                                                                                        \
    X(github)                                                                                      \
    X(gitlab)                                                                                      \
    X(junit)                                                                                       \
    X(markdown)

#define X(name) extern const struct batch_report batch_##name;
BATCH_REPORTS(X)
#undef X
extern const struct batch_report *const batch_reports[]; /* NULL-ended */
const struct batch_report *batch_report_find(const char *name);

/* All that are like the i-th (name, file and sets), into ret, which has room for n. Returns how many;
 * 0: it is not the first of them. */
size_t batch_alike(const struct batch *b, size_t i, const struct judged **ret);
/* The same for each kind, in the order of the first of each. */
void batch_each(const struct batch *b,
                void (*each)(void *arg, const struct judged *const *v, size_t n), void *arg);
