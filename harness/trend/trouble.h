/* trouble: which faults have struck what of a job, and in which phase of it; and so what has never
 * been tried. */
#pragma once

#include "harness/judge/recording.h"

#include <stddef.h>

/* Where the job was when the fault met it: its trigger had come true. */
enum trouble_phase {
    TROUBLE_MEETING,    /* no worker has started yet */
    TROUBLE_STARTING,   /* some of the round's workers have, and not all are ready */
    TROUBLE_LOADING,    /* not all of them have made a step */
    TROUBLE_TRAINING,   /* steps, and no save */
    TROUBLE_SAVING,     /* a checkpoint has been begun and not been committed */
    TROUBLE_RECOVERING, /* a worker of the round had failed, and the next has not begun */
    TROUBLE_ENDING,     /* a worker of the round has ended well */
    TROUBLE_PHASES
};

enum trouble_target {
    TROUBLE_RANK_0,  /* rank 0, its node or the agent there */
    TROUBLE_ANOTHER, /* one that has not rank 0 */
    TROUBLE_SEVERAL,
    TROUBLE_STORE, /* what serves the store */
    TROUBLE_TARGETS
};

const char *trouble_phase_name(enum trouble_phase p);   /* "training" */
const char *trouble_target_name(enum trouble_target t); /* "rank 0" */

struct trouble {
    size_t runs;
    size_t (*v)[TROUBLE_PHASES][TROUBLE_TARGETS]; /* how often, for each of faults[] (fault.h) */
};

void trouble_init(struct trouble *t);
void trouble_fini(struct trouble *t);
/* Counts what came in force in a run. Faults that this program does not know count for nothing. */
void trouble_add(struct trouble *t, const struct recorded_run *run);

/* i is one of is, or a copy. */
enum trouble_phase trouble_phase_of(const struct history *h, const struct incidents *is,
                                    const struct incident *i);
enum trouble_target trouble_target_of(const struct incident *i);

/* How often a fault (its place in faults[]) was tried: in a phase, or with TROUBLE_PHASES in any; on
 * a target, or with TROUBLE_TARGETS on any. */
size_t trouble_tried(const struct trouble *t, size_t fault, enum trouble_phase p,
                     enum trouble_target on);
/* Whether the fault can be aimed at that. */
bool trouble_can_be_on(size_t fault, enum trouble_target on);
