/* tree: what is done to all that descends from a process, root itself not. Each process is held
 * while something is done to it, so that no other that has its number since is touched. */
#pragma once

#include "base/err.h"
#include "faults/mechanism/keeper.h"

#include <stdint.h>
#include <sys/types.h>

/* Until a look finds nobody new. Returns how many were reached, or -ESRCH: nothing is below it. */
int tree_signal(pid_t root, int signo);

/* Lowers a soft limit (RLIMIT_*) of each to what `to` says of it, and gives all of them back what
 * they had; who has been forked meanwhile gets what its parent had. */
int tree_limit(pid_t root, int resource, int64_t (*to)(pid_t pid, void *arg), void *arg,
               struct err *err);
void tree_unlimit(pid_t root, int resource);

/* All of them run for run_ns, stand still for stop_ns, and so on; in the end they run. */
extern const struct keeper_work keeper_duty_tree;
