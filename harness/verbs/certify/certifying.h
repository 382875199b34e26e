/* certifying: a suite that is run for a certificate, from the command line to the signature. Private to
 * this folder. */
#pragma once

#include "harness/certify/acts.h"
#include "harness/certify/certificate.h"
#include "harness/certify/permit.h"
#include "harness/play/selection.h"
#include "harness/preflight/preflight.h"
#include "harness/verbs.h"
#include "harness/verbs/probe_wishes.h"
#include "reports/headway.h"

struct left_out {
    const char *what, *why;
};

/* A host that a provider reaches, and on which scenarios have nodes. */
struct certified_host {
    const char *name; /* as its provider knows it: "me@node7" */
    const char *node; /* the first of its nodes; NULL: it has none, and is asked all the same */
    int rack;         /* of that, from 1; 0: none */
    const char *const *words; /* that start an outpost there */
    struct station keeper;    /* has the host for as long as all of it lasts */
    /* As it says itself, once it is taken. */
    const char *address;
    const char *kernel;
    int64_t network;
    bool again; /* it is one that has been named before: not asked twice */
    const struct json *inventory;
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
    const struct provider *provider; /* of the hosts; NULL: there are none */
    const char *ssh;                 /* as provider_wish has it */
    struct certified_host *hosts;
    size_t hosts_n;
    bool here; /* nodes are emulated on this host */
    struct probe_wishes wishes;
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

/* ---- hosts.c ---- */

/* Which hosts there are, by the scenarios, and which of them nothing may be done on, by their names. Asks nobody. 0, or the exit
 * code after saying what is wrong. */
int certify_hosts_find(struct certification *c);
/* Reaches all of them, asks who they are, and takes them for this certification, by who. Nothing else is done on any before all
 * are taken. 0, or the exit code after saying which one cannot be. */
int certify_hosts_take(struct certification *c, const char *who);
/* Leaves out what these hosts cannot do. */
void certify_hosts_sift(struct certification *c);
/* The host on which somebody has halted the certification; NULL: nobody has. */
const char *certify_hosts_halted(struct certification *c);
/* An array of the hosts of the certificate. */
void certify_hosts_put(struct certification *c, struct json_writer *w, const char *key);
void certify_hosts_end(struct certification *c);

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
