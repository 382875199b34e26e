/* outcome: one run, made and judged. */
#pragma once

#include "harness/history/history.h"
#include "harness/history/rounds.h"
#include "harness/judge/verdict.h"
#include "harness/play/suite.h"

#include <stdio.h>

struct outcome_of_run {
    struct folder dir;
    struct history history;
    struct rounds rounds;
    struct verdict verdict;
    struct scenario *grown; /* with what was done by hand; NULL: nothing was */
};

/* Frees it too. */
void outcome_fini(struct outcome_of_run *o);
/* Runs it in o->dir, judges it and writes the verdict. 0, or -errno: it broke. */
int outcome_make(struct outcome_of_run *o, const struct run_spec *given,
                 const struct suite_options *options, const char *title, struct err *err);
/* Writes its reports into dir; options NULL: prints none. 0, or below. */
int outcome_report(struct outcome_of_run *run, const struct plan *p, const struct folder *dir,
                   const struct suite_options *o, struct err *err);
/* Where the run is shown while it happens: a report that a program reads has standard output for
 * itself. */
FILE *outcome_stage(const struct suite_options *o);
