/* clock_told: a kind of evidence that is what the programs of a node were told when they asked for
 * the time. It is written down by the object that told them (faults/clock/preload), as rankprobe
 * tells what a worker was given; the time that it was really is the kernel's, and does not lie
 * before the fault. */
#pragma once

#include "harness/run/evidence/evidence.h"

struct clock_known {
    int64_t since_ns;    /* the wall clock here when the fault was about to come in force */
    uint32_t generation; /* what the clock was set to then: the fault's is another one */
    struct clock_told told;
};

void *clock_told_begin(struct run_entry *a, struct bound *b);
/* Looks again, and whether all of it shows the fault. */
bool clock_told_felt(struct bound *b, struct clock_known *c,
                     bool (*shows)(const struct clock_shift *s, const struct clock_told *c));
void clock_told_put(const struct clock_known *c, struct json_writer *w);

#define EVIDENCE_IS_TOLD(name, shows, says)                                                        \
    static bool felt(struct bound *b) {                                                            \
        return clock_told_felt(b, b->known[EVIDENCE_##name], shows);                               \
    }                                                                                              \
    static void put(const struct run_entry *a, struct json_writer *w) {                            \
        clock_told_put(a->bound[0].known[EVIDENCE_##name], w);                                     \
    }                                                                                              \
    const struct evidence evidence_##name = {                                                      \
        .what = says,                                                                              \
        .absent = "what its programs were told does not show it: they did not ask the C library "  \
                  "for the time while it was wrong, or not often enough; what is linked "          \
                  "statically, or is Go, asks the kernel by itself",                               \
        .by_probe = true,                                                                          \
        .unannounced = true,                                                                       \
        .begin = clock_told_begin,                                                                 \
        .felt = felt,                                                                              \
        .put = put,                                                                                \
    }
