/* delta: delta debugging, the loop of every search for something smaller that still fails. Who
 * searches says what a candidate is, how it is tried, and keeps the best; what is left out together
 * and when the search is over is decided here. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum delta_answer {
    DELTA_SAME,  /* it fails in the same way: the best from now on */
    DELTA_OTHER, /* it does not, or cannot be */
    DELTA_STOP,  /* no more can be tried */
};

struct delta {
    enum delta_answer (*try)(void *arg, void *candidate);
    void *arg;

    /* What came of it. */
    int found;    /* candidates that failed in the same way */
    bool stopped; /* there may be something smaller */
};

/* Whether the candidate fails in the same way; once the search is stopped, false without trying. */
bool delta_try(struct delta *d, void *candidate);

/* Leaves out half of n parts at once, then the other half, then quarters, and so on down to single
 * parts. without: tries the best without `many` of the `left` parts that were not yet asked about
 * at this size, and returns how many are left then; 0: no more. n: returns how many there are. */
void delta_halves(struct delta *d, size_t (*n)(void *arg),
                  size_t (*without)(void *arg, size_t left, size_t many));

/* Takes all passes (NULL-ended), and again as long as one of them has found something: at most so
 * often. Each is called with arg. */
void delta_run(struct delta *d, void (*const *passes)(void *arg), int times_max);
