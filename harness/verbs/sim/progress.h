/* progress: how far the seeds are while they run. On a terminal one line, written over again and
 * again; elsewhere a line now and then. */
#pragma once

#include "base/buf.h"
#include "harness/sim/seeds.h"

enum progress_form { PROGRESS_NONE, PROGRESS_LINES, PROGRESS_BAR };

struct progress {
    enum progress_form form;
    uint64_t seeds; /* that there are to be */
    int64_t begun_ns, next_ns;
};

/* silent: nothing is said, for something else is. */
void progress_begin(struct progress *p, uint64_t seeds, bool silent);
void progress_seen(struct progress *p, const struct seeds_tally *t);
void progress_end(struct progress *p); /* the bar is gone */

/* "12 %  24000 seeds  ...", after so many nanoseconds. */
void progress_text(const struct progress *p, const struct seeds_tally *t, int64_t after_ns,
                   struct buf *out);
/* When the line after the one at that time is due: every ten seconds of the first minute, then
 * every minute. */
int64_t progress_due_ns(int64_t after_ns);
