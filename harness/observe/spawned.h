/* spawned: ranks that a job starts by itself, below a worker and without rankprobe. The kernel shows
 * what a process was given when its program was started, and never what it has set since. */
#pragma once

#include "base/buf.h"
#include "base/json.h"

#include <stdbool.h>
#include <sys/types.h>

struct spawned {
    struct buf environ; /* NAME=value, each ended by a zero */
    int rank, world_size;
};

/* Reads what the process was started with. Returns true when it was given RANK and WORLD_SIZE, as
 * numbers of which the first is below the second; then spawned_fini is due. */
bool spawned_read(struct spawned *s, pid_t pid);
void spawned_fini(struct spawned *s);

/* The same by what a process says of itself: {"RANK": "1", ..}. */
bool spawned_claimed(const struct json *env, int *ret_rank, int *ret_world_size);

/* The fields argv0 and env of worker-start (harness/history/history.h); env: what was claimed, or
 * NULL: what was read. */
void spawned_put(struct json_writer *w, const struct spawned *s, pid_t pid, const struct json *env);
