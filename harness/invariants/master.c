/* Compares the master of each round with the node of its rank 0. */
#include "harness/invariants/judge.h"

#include <stdio.h>
#include <string.h>

/* Every agent reaches others under its node's name here. */
static void on_start(struct judge *j, int node, const struct round_spec *s) {
    char name[16];
    snprintf(name, sizeof(name), "n%d", node);
    if (!*s->master_addr || s->master_port <= 0)
        invariant_broken(j, &invariant_master, "n%d starts round %lld without a master", node,
                         (long long)s->round);
    else if (s->rank_base == 0 && strcmp(s->master_addr, name) != 0)
        invariant_broken(j, &invariant_master, "rank 0 of round %lld is on n%d, the master is %s",
                         (long long)s->round, node, s->master_addr);
}

const struct invariant invariant_master = {
    .name = "master",
    .number = "I2",
    .summary = "the master of a round is the node of its rank 0",
    .text = "Workers are started with the address and a port of a master, and the address is that "
            "of the node which starts rank 0.",
    .check = "master",
    .on_start = on_start,
};
