/* resume: where a group goes on, and whose state it takes.
 *
 * Each rank that keeps checkpoints (places.h) reads the newest complete one in front of it, with all
 * its sums, and offers that; a rank that has outlived its group offers what it has in memory. The
 * newest of all wins, of equal ones the lowest rank's, and its holder sends weights and moments to
 * all. So it does not matter whose node is new or gone: as long as one of the newest holders is
 * there nothing is lost, and rank 0 may know nothing. */
#pragma once

#include "scenarios/jobs/ranktrain/checkpoint.h"
#include "scenarios/jobs/ranktrain/checkpoints/places.h"
#include "scenarios/jobs/ranktrain/net/bootstrap.h"
#include "scenarios/jobs/ranktrain/state.h"

#include "base/err.h"

struct resume_request {
    const struct checkpoint_place *place; /* dir NULL: no checkpoints */
    uint64_t seed, last_step;
    bool fresh;     /* begin anew where there are checkpoints and none can be used */
    bool in_memory; /* the state is that of its step already */
};

struct resume {
    int holder;                      /* -1: nobody, a fresh start */
    char path[PATH_MAX];             /* "": a fresh start */
    bool keeps;                      /* this rank saves */
    bool lacks;                      /* and does not have what was decided on */
    int64_t took_ns;                 /* from the first look for checkpoints on */
    struct checkpoint_places places; /* n 0: no checkpoints */
};

/* All ranks of a group that is forming call it; afterwards the state is the same on all, and each has
 * its part of it. Who lacks it, and holds a part, gets all of it in ret_lacking: state_fini. Sentences
 * about what was passed over are said on the rank that keeps it. */
int resume_agree(struct bootstrap *b, const struct resume_request *q, struct state *s,
                 struct state *ret_lacking, struct resume *ret, struct err *err);
