/* shrink: a schedule that breaks an invariant made smaller, as long as it breaks the same one:
 * fewer faults, fewer agents, a better network, shorter spans, round times (delta debugging).
 *
 * The same schedule shrinks to the same one, unless it runs out of time. */
#pragma once

#include "base/buf.h"
#include "harness/sim/schedule.h"

#include <signal.h>

enum { SHRINK_RUNS_USUAL = 20000 };

struct shrink_spec {
    int runs;        /* at most */
    int64_t time_ns; /* at most, of this machine */
    /* NULL, or: no more runs once it is not 0 */
    const volatile sig_atomic_t *stop;
    /* NULL: sim_play */
    void (*play)(const struct sim_schedule *s, bool trace, struct sim_result *ret);
};

struct shrunk {
    struct sim_schedule schedule;
    struct sim_result result; /* of its run: violated */
    int runs;                 /* that were tried */
    bool cut_short;           /* a limit was reached: it might have become smaller */
};

/* Up to the colon: "I4", "CONTRACT"; ret has room for 32. */
const char *shrink_invariant(const char *violation, char *ret);

/* Returns false when the schedule breaks nothing; else sim_schedule_fini frees ret's. */
bool shrink(const struct sim_schedule *s, const struct shrink_spec *spec, struct shrunk *ret);
