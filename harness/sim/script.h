/* script: a schedule as a file, one line a fault. What is written is read back the same.
 *
 *     simulation: seed-31
 *     breaks: I1                                     # what its run is to break; absent: nothing
 *     seed: 31                                       # of how long messages take, and the like
 *     agents: 3
 *     nodes: "1:2"
 *     trouble: 2s                                    # then everything heals
 *     timeline:
 *       - {at: 1.250s, fault: node-cut, on: n1, for: 300ms}
 *       - {at: 1.300s, after: 3, fault: agent-kill, on: writer, back: 20ms}
 *
 * after: the fault waits for so many transactions and strikes before anybody hears of the last;
 * writer is who sent that. back: the agent is started again so long after. */
#pragma once

#include "base/buf.h"
#include "harness/scenario/scenario.h"
#include "harness/sim/schedule.h"

struct script {
    struct sim_schedule schedule;
    const char *name;    /* "seed-31" */
    const char *breaks;  /* "I1", or NULL */
    const char *planted; /* the bug of the core that it is about, or NULL */
    const char *found;   /* the sentence it broke with when it was written, or NULL */
    struct arena arena;  /* owns the texts of one that was read */
};

/* Returns NULL with d filled when it is none, or a wrong one; else to be freed. */
struct script *script_read(const char *file, struct diagnostics *d);
struct script *script_free(struct script *s); /* NULL is allowed; returns NULL */

void script_write(const struct script *s, struct buf *out);
/* "1.250s", "300ms": as written in a file; ret has room for 32. */
const char *script_time(int64_t ns, char *ret);
