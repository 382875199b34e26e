/* disk_done: a kind of evidence that is a count of operations which the kernel has handed to us, as
 * system calls or as the server of a disk, and has ended, or kept waiting, as we said. */
#pragma once

#include "harness/run/evidence/evidence.h"

struct disk_seen {
    struct disk_rule rule; /* that the fault brings in force */
    enum node_place place;
    int64_t before; /* it has struck so often */
};

void *disk_seen_begin(struct run_entry *a, struct bound *b, enum disk_verdict v);
bool disk_seen_felt(struct bound *b, const struct disk_seen *s, enum disk_verdict v);
void disk_seen_put(const struct run_entry *a, const struct disk_seen *s, enum disk_verdict v,
                   struct json_writer *w);

/* ours: only a disk of ours does that, and says so. */
#define EVIDENCE_IS_DISK(name, verdict, ours, says, says_not)                                      \
    static void *begin(struct run_entry *a, struct bound *b) {                                     \
        return disk_seen_begin(a, b, verdict);                                                     \
    }                                                                                              \
    static bool felt(struct bound *b) {                                                            \
        return disk_seen_felt(b, b->known[EVIDENCE_##name], verdict);                              \
    }                                                                                              \
    static void put(const struct run_entry *a, struct json_writer *w) {                            \
        disk_seen_put(a, a->bound[0].known[EVIDENCE_##name], verdict, w);                          \
    }                                                                                              \
    const struct evidence evidence_##name = {                                                      \
        .what = says,                                                                              \
        .absent = says_not,                                                                        \
        .by_disk = ours,                                                                           \
        .unannounced = true,                                                                       \
        .told = true,                                                                              \
        .begin = begin,                                                                            \
        .felt = felt,                                                                              \
        .put = put,                                                                                \
    }
