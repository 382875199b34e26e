/* ctrf: runs in the Common Test Report Format (https://ctrf.io), in the words of its schema 0.0. */
#pragma once

#include "reports/judged.h"

struct ctrf_counts {
    int64_t tests, flaky, by[4]; /* by enum finding_status */
};

/* The tests of runs that are alike, one for each check, into an open array, and into the counts. */
void ctrf_put_tests(struct json_writer *w, const struct judged *const *v, size_t n,
                    struct ctrf_counts *counts);
/* Everything around the tests, which are JSON already. */
void ctrf_put(struct buf *out, const struct ctrf_counts *counts, const char *version,
              double duration_s, const struct buf *tests,
              void (*put_extra)(struct json_writer *w, const void *arg), const void *arg);
