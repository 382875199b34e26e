/* counters: what the kernel counts in the control group that holds a node to a limit; where the node
 * has none, another sign is looked for. */
#pragma once

#include "harness/run/evidence/evidence.h"

struct counter {
    int64_t count;      /* the largest that was seen */
    bool by_group;      /* a control group was there */
    bool stood;         /* without one: all of the node was seen to stand still */
    const void *limits; /* without one: those that a process of it had before */
};

void *counter_begin(struct run_entry *a, struct bound *b);
/* Takes down the number behind `key` in a file of the node's control group; a file that has one word
 * only needs none. False: there is no control group now. */
bool counter_look(struct counter *k, const struct bound *b, enum node_limit what, const char *file,
                  const char *key);
/* For records: by which mechanism, and what was counted. */
void counter_put(const struct counter *k, struct json_writer *w, const char *otherwise);
