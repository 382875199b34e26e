/* progress: how far the seeds are while they run (reports/headway.h), and what they have shown. */
#pragma once

#include "base/buf.h"
#include "harness/sim/seeds.h"
#include "reports/headway.h"

struct progress {
    struct headway headway;
    int64_t begun_ns;
};

/* silent: nothing is said, for something else is. */
void progress_begin(struct progress *p, uint64_t seeds, bool silent,
                    const struct headway_wish *wish);
void progress_seen(struct progress *p, const struct seeds_tally *t);
void progress_end(struct progress *p); /* the bar is gone */

/* "marks 3 of 9  violations 0" */
void progress_note(const struct seeds_tally *t, struct buf *out);
