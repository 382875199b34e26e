/* features: what a scenario may demand of the host (`feature:`), one struct each. Where the host
 * has it not, the scenario is skipped, with the reason. */
#pragma once

#include "harness/plan/plan.h"

struct feature {
    const char *name;
    const char *argument; /* what stands behind the name, "N", "COMMAND"; NULL: nothing */
    const char *text;
    /* 0, or -ENOTSUP with why the host has it not; -EINVAL: the argument is none. argument is ""
     * where there is none. */
    int (*check)(const struct plan *p, const char *argument, struct err *err);
};
extern const struct feature features[]; /* in alphabetical order, ended by {0} */

/* What is named but is no feature, or lacks its argument, is a mistake in the file. */
void features_make(struct plan *p, struct diagnostics *d);
/* What "command COMMAND" gives to sh; NULL: it is another feature. */
const char *features_command(const char *text);
/* Tries them all but, in a plan of somebody else's, commands; 0, or -ENOTSUP with the first that is
 * not there. */
int features_check(const struct plan *p, struct err *err);
