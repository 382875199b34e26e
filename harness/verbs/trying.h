/* trying: one `try`: a typed command, its control run, and the runs in which it is disturbed. */
#pragma once

#include "base/sys/folder.h"
#include "harness/ci/pipeline.h"
#include "harness/play/jobs.h"
#include "harness/play/suite.h"
#include "harness/verbs/typed.h"
#include "reports/overview.h"

struct trying {
    struct arena arena;
    struct typed typed;
    const char **sets; /* what the control run is loaded with */
    struct suite_options suite;
    uint64_t seed;
    int64_t jobs;
    const char *budget; /* "5m": as it was typed */
    struct folder dir;
    struct err not_undone; /* why what the job writes stays, if it does */
    struct scenario *base;
    struct plan *plan;
    struct control control;
    struct generate_run run;
    struct generate_moment moment;
    struct scenario limited;       /* base with those limits only that were asked for */
    struct generate_fault *faults; /* the five, and those of --also */
    int n;
    struct generate_cost *costs; /* of each fault, as files */
    struct job *files;
    struct headway headway; /* of the runs with a fault */
    char place[32];         /* "2 of 6" */
    struct overview overview;
    struct overview_row *rows; /* 1 + n */
    struct pipeline pipeline;  /* with --ci */
};

/* Of the budget; 0: it is spent. */
int64_t trying_left_ns(const struct trying *t);
/* Fills faults from what --also says, NULL-ended: names, families and all, with commas between.
 * Returns 0, or EXIT_USAGE_ERROR after saying what is wrong. */
int trying_also(struct trying *t, const char *const *also);
/* Adds the kill during a save, or says what would let it; after the control run. */
void trying_saving(struct trying *t);
/* The code of what could not be judged, as --strict has it. */
int trying_soft(const struct trying *t, int code);
/* A row without figures. */
struct overview_row trying_row(const char *name, int code);
/* NULL: what is wrong has been said. */
struct scenario *trying_load(const char *path, const char *const *sets, uint64_t seed,
                             struct plan **ret_plan);
/* Runs the scenarios in files, as far as the budget goes, and fills their rows and codes. */
void trying_disturb(struct trying *t);
