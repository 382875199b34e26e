/* lost: what of a run nobody can have seen as it was: the harness was away, somebody trained who
 * was never seen to start, or a limit of the host was in the way of the job. What fails then need
 * not have failed. */
#pragma once

#include "harness/history/history.h"
#include "harness/history/rounds.h"

struct lost {
    bool any;
    bool blind;  /* what was recorded is not all there was; else it is, and the host is to blame */
    int64_t seq; /* of the record that shows it */
    size_t sound_n; /* so many records come before anything was lost */
    char why[170];
};

/* rs: of all that h holds. What weighs most is told: an absence, somebody unseen, a limit. */
void lost_find(struct lost *ret, const struct history *h, const struct rounds *rs);

/* The record was received while nothing was lost: neither when the harness was away, nor in the
 * second after, when it read what had come meanwhile. */
bool lost_spares(const struct history *h, int64_t seq);
