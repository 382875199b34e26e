/* trials: every fault tried, several at a time, each in a run of its own (`rankquake run --alone`) in
 * a folder that is gone afterwards, whoever interrupts. */
#pragma once

#include "harness/trial/trial.h"

struct trials {
    const char *program;   /* rankquake's own, absolute */
    const char *isolation; /* auto, namespaces or processes */
    int at_once;
    bool keep;                                        /* the folder stays */
    void (*told)(void *arg, size_t done, size_t all); /* when one has ended; may be NULL */
    void *arg;
    /* Filled. */
    struct arena arena;
    struct trial_outcome *outcomes; /* as faults */
    const char *dir;                /* where the histories are, if they are kept; else NULL */
    bool interrupted;
};

/* Tries those of which `wanted`, as faults, says so; NULL: all. 0, or a -errno: nothing was tried. */
int trials_run(struct trials *t, const bool *wanted, struct err *err);
void trials_fini(struct trials *t);

/* What such folders in the folder for temporary files are called: the prefix, and six letters more. */
#define TRIALS_FOLDER "rankquake-doctor-"
const char *trials_place(void);
