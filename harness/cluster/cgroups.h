/* cgroups: those that a job makes outlive its processes and every namespace; nobody but who made
 * them takes them away. Who made one cannot be asked. A run's is one below the harness's own, where
 * its nodes begin, that was not there before it, is the same user's, and holds no process once the
 * run's have ended. */
#pragma once

#include "base/json.h"
#include "base/texts.h"

#include <sys/types.h>

/* How the names of those begin in which a harness holds what runs on a node to a limit. */
#define CGROUPS_OF_NODES "rankquake-node-"

/* What is there below the caller's own, in every hierarchy that is mounted; sorted. */
struct texts cgroups_look(void);
/* Paths that have appeared since and hold no process, nor anything below them; nothing below one
 * that has appeared too. */
struct texts cgroups_new(const struct texts *before);

/* Of the caller's user, those in which nodes are held to limits, wherever they are in the hierarchies that are
 * mounted: who looks may be in another place than who has made them. */
struct texts cgroups_of_nodes(void);

/* Takes it away with all below it, as far as they hold no process. Returns 0 or a -errno. */
int cgroups_remove(const char *path);

/* Where the caller is in the hierarchy that has the controller, for free(); NULL: none that is
 * mounted here has it. *ret_unified: it is of version 2. */
char *cgroups_own(const char *controller, bool *ret_unified);
/* Puts the process into it. Returns 0 or a -errno; -ESRCH: it has ended. */
int cgroups_put(const char *path, pid_t pid);
/* Puts all that is in it there, whatever its limits are, and removes it. 0 or a -errno; -ENOENT: it
 * is gone. */
int cgroups_release(const char *path, const char *to);
/* Kills all that is in it, and removes it. Returns 0 or a -errno. */
int cgroups_clear(const char *path);

/* Appends to the array that w is in the paths of the cgroups that these processes are in and the
 * caller is not. */
void cgroups_put_of(struct json_writer *w, const pid_t *pids, size_t n);
