/* eight_commits: a logbook of eight commits with ten runs each, from one of them on slower. For tests of
 * what is made of series. */
#pragma once

#include "base/str.h"
#include "harness/trend/series.h"

#include <stdio.h>
#include <string.h>

enum { COMMITS = 8, EACH = 10, RUNS = COMMITS * EACH };
static const struct gate_options options = {.runs = GATE_RUNS, .level = 0.01, .slower = 0.1};

struct fixture {
    struct trend_entry entries[RUNS], *pointers[RUNS];
    struct trend_measure measures[RUNS][3];
    char commits[COMMITS][16];
    struct logbook book;
};

/* Eight commits, ten runs each, with a little noise; from `slow` on by so much slower. */
static void fill(struct fixture *f, size_t slow, double longer) {
    memset(f, 0, sizeof(*f));
    for (size_t i = 0; i < RUNS; i++) {
        double ms = 100 + (double)(i * 7 % 11), by = i / EACH >= slow ? longer : 1;
        snprintf(f->commits[i / EACH], sizeof(f->commits[0]), "c%zu<&>", i / EACH);
        f->measures[i][0] = (struct trend_measure){"kill/recover", ms * by};
        f->measures[i][1] = (struct trend_measure){"job", 900 + ms};
        f->measures[i][2] = (struct trend_measure){"kill/detect", 1};
        f->entries[i] = (struct trend_entry){.id = "x",
                                             .time_ns = (int64_t)i,
                                             .origin = {f->commits[i / EACH], "main", "m"},
                                             .scenario = "s",
                                             .launcher = "l",
                                             .check = "",
                                             .calibration_ms = 2,
                                             .v = f->measures[i],
                                             .n = 3};
        f->pointers[i] = &f->entries[i];
    }
    f->book.v = f->pointers;
    f->book.n = RUNS;
}

static const struct trend_series *named(const struct series_list *l, const char *measure) {
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i].measure, measure))
            return &l->v[i];
    return NULL;
}
