/* presence: who lives in a run directory. The harness notes itself and the first process of each
 * node in presence.json while a run goes on, and takes the file away with the cluster; one that is
 * found later tells `clean` what a killed harness has left, and `enter` where a node is.
 *
 * A process is named by its pid and the ticks at which it started, within one boot of the machine
 * and one pid namespace. But the file lies in a directory that a stranger may have sent: no process
 * is ended or gone into for what it says alone. The mark that it names must be the process's own
 * (harness/cluster/mark.h), which nobody can bring about who writes a file. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/sys/folder.h"
#include "harness/cluster/mark.h"

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
    char mark[MARK_SIZE];     /* what every process of the run carries */
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
int presence_write(const struct folder *run, const struct presence *p, struct err *err);
/* -ENOENT: nobody lives there, or the run has ended in order. Names are the arena's. */
int presence_read(const struct folder *run, struct arena *a, struct presence *ret, struct err *err);
/* The same of the first in which a harness lives: the run's, and that of the control run before it,
 * which has a directory of its own. -ESRCH: in none. */
int presence_read_living(const struct folder *run, struct arena *a, struct presence *ret);
/* Opens the directory of a run, of one that goes on or that has ended. */
int presence_find_run(struct folder *ret, const char *dir, struct err *err);
void presence_remove(const struct folder *run);

enum presence_state presence_state(const struct presence *p);
/* Whether there is a process with this number that began then; only to be asked of what is not
 * elsewhere. */
bool presence_lives(const struct presence *p, const struct presence_process *process);
/* Whether it is this run's, too: the harness that drew the mark, a node that carries it. */
bool presence_is_harness(const struct presence *p);
bool presence_is_node(const struct presence *p, const struct presence_process *node);
/* Whether the run's harness is dead, and processes that carry its mark are left over. */
bool presence_is_orphaned(const struct presence *p);
