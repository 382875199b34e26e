/* marks: how many of the seeds have reached each place that a schedule should sometimes reach. */
#pragma once

#include "base/buf.h"
#include "harness/sim/seeds.h"

enum {
    MARKS_SHARE = 1000,  /* one of so many seeds is to reach each; which does not is marked */
    MARKS_SEEDS = 100000 /* what none of so many seeds has reached cannot be reached */
};

/* A line for each mark. Returns how many were never reached in MARKS_SEEDS seeds or more, drawn
 * from all kinds of faults; in fewer, or where the options keep some from happening, that says
 * nothing: 0. */
int marks_tell(const struct sim_config *config, const struct seeds_tally *t, struct buf *out);

/* A line for each invariant: how many seeds could have broken it. */
void risks_tell(const struct seeds_tally *t, struct buf *out);

/* A line: how many kinds of decisions were reached, and how many seldom. */
void decisions_tell(const struct seeds_tally *t, struct buf *out);
