/* leases: what readers of a checkpoint directory have not read yet, so that nobody takes it away.
 *
 * A reader holds a file evaluator-HOST-PID.lease there: one JSON object, what it has read and what
 * it skips,
 *
 *     {"format": "ranktrain-lease", "read": 40, "every": 20}
 *
 * under a lock that the kernel gives back when the reader dies, however it dies. Some disks show a
 * lock only on the host where it is held: so a lease also counts while its time of change is less
 * than LEASE_SECONDS before that of the directory, and its reader renews it. A dead reader's is taken
 * away, and keeps nobody from anything for longer than that. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { LEASE_SECONDS = 60, LEASES = 16 };

struct leases {
    int n;
    struct lease_terms {
        int64_t read, every; /* up to read, and what is no multiple of every, it does not need */
    } terms[LEASES];
    bool all; /* there are more, or one that cannot be read */
};

/* Of those who live; takes away what the dead have left. */
void leases_look(int dir, struct leases *ret);
bool leases_want(const struct leases *l, int64_t step);

/* A reader's own. */
struct lease {
    int fd; /* -1: none */
    int dir;
    char name[160];
    int64_t every;
};

/* Nothing has been read yet. dir stays the caller's and open. */
int lease_take(struct lease *ret, int dir, int64_t every, struct err *err);
int lease_read(struct lease *l, int64_t step, struct err *err); /* up to this step */
void lease_renew(struct lease *l);
void lease_drop(struct lease *l); /* and takes the file away */
