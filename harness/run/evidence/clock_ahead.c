/* Programs that were told a wrong time. */
#include "harness/run/evidence/clock_told.h"

/* All that they were told is as far off as the fault says. */
static bool shows(const struct clock_shift *s, const struct clock_told *c) {
    return s->by_ns && clock_ahead_by(&c->least) == s->by_ns &&
           clock_ahead_by(&c->most) == s->by_ns;
}

EVIDENCE_IS_TOLD(clock_ahead, shows,
                 "programs of the node were told a time that is not the right one");
