/* losses: what is lost together. Some losses take others with them: with a journal all later
 * changes of names; of a write the later writes that the same sector or page would hold, for it is
 * written as a whole; and what was promised cannot be lost. Pure. */
#pragma once

#include "harness/crash/promises.h"
#include "harness/crash/states.h"

struct crash_losses {
    struct crash_loss *v; /* by mem_push */
    size_t n;
};

enum { CRASH_SECTOR = 512, CRASH_PAGE = 4096 };
uint64_t crash_losses_unit(enum crash_death death);

/* Where something stands in a world. */
struct crash_moment {
    const struct crash_changes *changes;
    const struct crash_promises *promises;
    size_t point;
    uint64_t unit;
    size_t node; /* that died; CRASH_NONE: all */
};

/* Whether a change of names or a shape, or bytes of a write, can be lost at all. */
bool crash_losses_may(const struct crash_moment *m, size_t operation, enum crash_part part);

/* Adds what they take with them, takes out what cannot be lost, sorts: by operation, then part, then
 * place. What is in there already and stays is all that there is. */
void crash_losses_close(const struct crash_moment *m, struct crash_losses *l);
