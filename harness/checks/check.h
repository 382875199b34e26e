/* check: one question asked of a history. One file per check, one const struct, one line in
 * checks.h.
 *
 * A check declares the sources it may read and is given a history from which all others have been
 * taken out (verdict_judge filters), so it cannot be fooled by what it did not name. A claim may be
 * read only for what the job alone can know, and where something outside sees it too it is
 * compared. */
#pragma once

#include "harness/verdict.h"

#define SOURCES(s) (1u << SOURCE_##s)

struct check {
    const char *name;    /* as in `list checks` */
    const char *summary; /* one line */
    const char *text;    /* what it means, for explain */
    enum finding_class class;
    unsigned sources; /* SOURCES(KERNEL) | ... ; SOURCE_HARNESS is always given */
    void (*judge)(const struct trial *t, struct finding *f);
};

/* For checks about rounds. False when no worker was seen to start, with the finding filled: nothing
 * to judge where the job was meant to fail, an open question where it was meant to train. */
bool check_sees_rounds(const struct trial *t, struct finding *f);

extern const struct check *const checks[]; /* alphabetical, NULL-ended */
const struct check *check_find(const char *name);
