/* Programs for which the time went by too fast or too slowly. */
#include "harness/run/evidence/clock_told.h"

/* From one look to the next more time has gone by, or less, than really has. */
static bool shows(const struct clock_shift *s, const struct clock_told *c) {
    int64_t gained = clock_ahead_by(&c->last) - clock_ahead_by(&c->first);
    return s->drift_ppb && c->last.real_ns > c->first.real_ns &&
           (s->drift_ppb > 0 ? gained > 0 : gained < 0);
}

EVIDENCE_IS_TOLD(
    clock_drifting, shows,
    "programs of the node were told times between which more or less has gone by than really has");
