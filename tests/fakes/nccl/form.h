/* form: what is inside an id, and what a rank says to the root. */
#pragma once

#include "tests/fakes/nccl/comm.h"

struct id {
    uint64_t magic;
    struct endpoint root;
};
_Static_assert(sizeof(struct id) <= sizeof(ncclUniqueId), "it must fit");

struct hello {
    uint64_t magic;
    int world;
    struct rank_place place;
};
