/* series: what one measure of one scenario has been over the runs of a logbook, under one launcher on
 * machines of one label; and where it has become worse. */
#pragma once

#include "harness/trend/gate.h"
#include "harness/trend/logbook.h"

struct trend_series {
    const char *scenario, *launcher, *machine, *measure;
    const struct trend_entry **runs; /* that have the measure and passed; by time */
    double *values;
    size_t n;
    size_t bad;              /* the first of the first commit that is slower; n: none is */
    struct gate_finding why; /* of that */
};

struct series_wanted {
    const char *branch, *scenario; /* NULL: all */
    const char *const *measures;   /* NULL-ended; empty: those that are told by default */
};

struct series_list {
    struct arena arena;
    struct trend_series
        *v; /* by scenario, launcher, machine, then as the entries have the measures */
    size_t n;
};

/* Told unless others are asked for: "job" and what ends in "/recover". */
bool series_is_wanted(const struct series_wanted *w, const char *measure);
/* The logbook must outlive it. */
void series_list_make(struct series_list *ret, const struct logbook *l,
                      const struct series_wanted *w);
void series_list_fini(struct series_list *s);

/* Finds the first commit at which the gate would have said slower, and what it says of all runs
 * from there on until it is as quick again. */
void series_find_bad(struct trend_series *s, const struct gate_options *o);

/* "812 ms", "12.3 s", "64 %". */
void series_put_value(const char *measure, double value, struct buf *out);
