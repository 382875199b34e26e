/* wire_claim: what an entry of the timeline would have the wire do, to which frames. Found by bringing its
 * fault in force on a node that does nothing and notes what it is asked. */
#pragma once

#include "harness/plan/plan.h"

enum { WIRE_CLAIM_NODES = 64 };

struct wire_claim {
    bool cut;      /* nothing passes, by a partition */
    unsigned does; /* impairment_does of all of its steps */
    struct impairment how;
    int group[WIRE_CLAIM_NODES]; /* of plan->nodes; -1: none */
};

/* False: it asks nothing of the wire that would last, or whom it means is known only when it fires. */
bool wire_claim_of(const struct plan *p, const struct planned_entry *pa, struct wire_claim *ret);
/* Whatever `inner` is about, `outer` is about as well. */
bool wire_claim_covers(const struct wire_claim *outer, const struct wire_claim *inner);
