/* certifying: a suite that is run for a certificate, from the command line to the signature. Private to
 * this folder. */
#pragma once

#include "harness/certify/acts.h"
#include "harness/certify/certificate.h"
#include "harness/certify/permit.h"
#include "harness/play/selection.h"
#include "harness/verbs.h"
#include "reports/headway.h"

struct left_out {
    const char *what, *why;
};

struct certification {
    const struct arguments *arguments;
    struct arena arena;
    struct scenario_files files;
    struct selection selection;
    struct permit permit;
    const char *suite, *path;    /* its name; the file or folder it came from */
    const char *operator_, *key; /* key NULL: it is not signed */
    const char *out;
    int64_t repeat, days, budget_ns, began_ns;
    uint64_t seed; /* of the command line, else 1 */
    bool every_node, yes, plan_only;
    const char **without, **results; /* probes of preflight, files; to be freed */
    struct headway_wish wish;
    int64_t issued_ns; /* of the wall clock */

    struct certified_point { /* what is run: a selected scenario as often as asked */
        const struct selected *of;
        const char *name;        /* "node-killed", "node-killed on n1" */
        const char *const *sets; /* with those that choose the victim; NULL-ended */
    } * points;
    size_t points_n;

    struct folder dir; /* of the certificate */
    struct acts acts;
    struct buf scenarios; /* the array of it, as it grows */
    struct json_writer writer;
    struct buf preflight; /* an array: preflight.h */
    struct left_out *left;
    size_t left_n, runs_n;
};

/* ---- plan.c ---- */

/* What is to be run, and what of it goes beyond what is permitted. 0, or the exit code after saying
 * so. */
int certify_choose(struct certification *c);
/* Prints what will be done. */
void certify_print_plan(const struct certification *c, FILE *out);
/* Whether somebody agrees to it: 0, or the exit code after saying why not. */
int certify_accept(const struct certification *c);
void certify_leave_out(struct certification *c, const char *what, const char *why);

/* ---- course.c ---- */

/* Runs all of it. Returns 0, EXIT_INTERRUPTED, or EXIT_BROKEN after saying why nothing can be
 * certified. */
int certify_run_all(struct certification *c);

/* ---- issue.c ---- */

/* Writes certificate, page and signature. Returns the code of what is certified, or EXIT_BROKEN after
 * saying why there is none. */
int certify_issue(struct certification *c);

/* ---- words of the verb; each returns the exit code, a->files[0] being the word ---- */

int certify_suite(const struct arguments *a);
int certify_verify(const struct arguments *a);
int certify_diff(const struct arguments *a);

/* Opens the directory of a certificate by its own name or that of its certificate.json; the exit code after
 * saying why not. */
int certify_open(const struct arguments *a, const char *path, struct folder *ret);
