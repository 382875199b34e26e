/* announcement: what `try` says to people before and while it runs, wrapped at the width of the
 * terminal, or at 80 columns where there is none. */
#pragma once

#include "harness/plan/plan.h"
#include "harness/scenario/sketch.h"

/* One paragraph on standard output. */
void announcement_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* One run has ended: its sign, its name, what came of it. */
void announcement_ended(const char *name, int exit_code, const char *what);

struct announcement {
    const struct sketch *sketch;
    const struct scenario *base;  /* undisturbed, as loaded */
    const struct plan *plan;      /* of it */
    const char *dir;              /* where every run is kept */
    const struct err *not_undone; /* why what the job writes stays; code 0: no reason is known */
};

/* What will be done, in three lines, and what differs from the command. */
void announcement_plan(const struct announcement *a);
