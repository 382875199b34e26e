/* peers: what other members of a run do to its keys, drawn: in the words of torchrun and of rankrun, sensible most of the
 * time and sometimes not. */
#pragma once

#include "base/rand.h"
#include "tests/agent/legacy/tree_model.h"

struct peers {
    struct tree_model *tree;
    struct rand *chance;
    const char *rdzv; /* the folder */
    int64_t now_ns;
    int max;       /* nodes of a round */
    bool torchrun; /* they are; else rankruns */
    bool newer;    /* of torch 2.4 and later */
    bool calm;     /* they do not disturb a round */
    bool strange;  /* what they write may be no sense */
};

/* One thing, if there is something to do for them; own: the agent's, whose place is not theirs. */
void peers_act(const struct peers *p, const char *own_uid);
