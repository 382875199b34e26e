/* promises: from when on each change is sure to be there, as one disk_model has it. Pure. */
#pragma once

#include "harness/crash/changes.h"
#include "harness/crash/disk_model.h"

/* By operation. A point is a number of operations that had been done. */
struct crash_promises {
    const struct disk_model *model;
    const struct disk_model *shared; /* of what all nodes share, of several disks; NULL: one disk */
    size_t *all;     /* first point at which it is there for sure; CRASH_NONE: never */
    size_t *removal; /* of one that is apart: that the old name has gone */
    size_t *bytes;   /* of a write */
    size_t *needs;   /* with a journal, a write: changes before this operation are there if any of
                        its bytes are */
    size_t *flushes; /* with a journal, a write: the first change of names that is there only with
                        its bytes; CRASH_NONE: none */
};

void crash_promises_find(struct crash_promises *p, const struct disk_model *model,
                         const struct disk_model *shared, const struct crash_changes *c,
                         struct arena *arena);
/* What promises something of this change. */
const struct disk_model *crash_promises_model(const struct crash_promises *p,
                                              const struct crash_change *g);
/* Names or a shape, which a journal has in order. */
bool crash_promises_changes_names(const struct crash_change *g);
