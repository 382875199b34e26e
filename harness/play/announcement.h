/* announcement: what `try` says to people before, while and after it runs, wrapped at the width of
 * the terminal, or at 80 columns where there is none. */
#pragma once

#include "base/sys/folder.h"
#include "harness/plan/plan.h"
#include "harness/scenario/generate.h"
#include "reports/overview.h"

/* One paragraph on standard output. */
void announcement_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* One run has ended: its sign, its name, what came of it. */
void announcement_ended(const char *name, int exit_code, const char *what);

struct announcement {
    const struct generated *generated;
    const struct scenario *base; /* without faults, as loaded */
    const struct plan *plan;     /* of it */
    const struct generate_fault *faults;
    int n;
    const char *dir;              /* where every run is kept */
    const char *budget;           /* "5m": what all of it may take */
    const struct err *not_undone; /* why what the job writes stays; code 0: no reason is known */
};

/* What will be done, in four lines, and what differs from the command. */
void announcement_plan(const struct announcement *a);

struct announcement_costs {
    const char *launcher, *budget;
    const struct generate_fault *faults;
    const struct generate_cost *v; /* of each fault; least_ns 0: it is not run */
    int n;
    int64_t left_ns; /* of the budget */
    int64_t all_ns;  /* what all of them may take together */
};

/* What each disaster may cost, and whether the budget will do. */
void announcement_costs(const struct announcement_costs *c);

/* The table on standard output, the page in dir. Returns 0 or a -errno. */
int announcement_result(struct overview *o, const struct scenario *base, const struct folder *dir,
                        struct err *err);
