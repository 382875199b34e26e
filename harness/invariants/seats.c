/* Compares ranks with those that were fixed. */
#include "harness/invariants/judge.h"

static void on_start(struct judge *j, int node, const struct round_spec *s) {
    int seat = judge_node(j, node)->seat;
    if (seat)
        judge_risk(j, INVARIANT_seats);
    if (seat && s->group_rank != seat - 1)
        invariant_broken(j, &invariant_seats, "n%d was given group rank %d and starts as %d", node,
                         seat - 1, s->group_rank);
}

const struct invariant invariant_seats = {
    .name = "seats",
    .number = "I3",
    .summary = "with fixed ranks every node has the rank it was given",
    .text = "In a job with fixed ranks (torchrun's static rendezvous) a node starts its workers "
            "with the group rank that its command line says, or not at all.",
    .check = "ranks",
    .on_start = on_start,
};
