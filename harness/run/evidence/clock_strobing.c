/* Programs that were told the right time and a wrong one. */
#include "harness/run/evidence/clock_told.h"

/* They were told the right time and the wrong one. */
static bool shows(const struct clock_shift *s, const struct clock_told *c) {
    return s->by_ns && clock_ahead_by(&c->most) - clock_ahead_by(&c->least) ==
                           (s->by_ns > 0 ? s->by_ns : -s->by_ns);
}

EVIDENCE_IS_TOLD(clock_strobing, shows,
                 "programs of the node were told the right time and a wrong one");
