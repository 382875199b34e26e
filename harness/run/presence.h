/* presence: who lives in a run directory. The harness notes itself and the first process of each
 * node in presence.json while a run goes on, and takes the file away with the cluster; one that is
 * found later tells `clean` what a killed harness has left, and `enter` where a node is.
 *
 * A process is named by its pid and the ticks at which it started, within one boot of the machine
 * and one pid namespace, so that nobody else's process is ever taken for it. */
#pragma once

#include "agent/base/arena.h"
#include "agent/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct presence_process {
    const char *name; /* "harness", "n0" */
    pid_t pid;
    uint64_t start_ticks;
};

struct presence {
    char boot[64], space[64]; /* the machine's boot, the harness's pid namespace */
    bool keep;                /* the scratch directory is meant to stay */
    struct presence_process harness, *nodes;
    size_t nodes_n;
};

enum presence_state {
    PRESENCE_LIVE,     /* the harness lives */
    PRESENCE_OVER,     /* it is dead */
    PRESENCE_ELSEWHERE /* it belongs to another pid namespace (a container): not to be known here */
};

/* Of the calling process; no nodes yet. */
void presence_own(struct presence *ret, bool keep);
/* Puts its file into a run directory, whole or not at all. */
int presence_write(const char *dir, const struct presence *p, struct err *err);
/* -ENOENT: nobody lives there, or the run has ended in order. Names are the arena's. */
int presence_read(const char *dir, struct arena *a, struct presence *ret, struct err *err);
/* 0: the directory of a run, of one that goes on or that has ended; else a -errno. */
int presence_find_run(const char *dir, struct err *err);
void presence_remove(const char *dir);

enum presence_state presence_state(const struct presence *p);
/* Whether this process of it still runs; only to be asked of what is not elsewhere. */
bool presence_lives(const struct presence *p, const struct presence_process *process);
