/* cgroups: those that a job makes outlive its processes and every namespace; nobody but who made
 * them takes them away. Who made one cannot be asked. A run's is one below the harness's own, where
 * its nodes begin, that was not there before it, is the same user's, and holds no process once the
 * run's have ended. */
#pragma once

#include "base/json.h"
#include "base/texts.h"

#include <sys/types.h>

/* What is there below the caller's own, in every hierarchy that is mounted; sorted. */
struct texts cgroups_look(void);
/* Paths that have appeared since and hold no process, nor anything below them; nothing below one
 * that has appeared too. */
struct texts cgroups_new(const struct texts *before);

/* Takes it away with all below it, as far as they hold no process. Returns 0 or a -errno. */
int cgroups_remove(const char *path);

/* Appends to the array that w is in the paths of the cgroups that these processes are in and the
 * caller is not. */
void cgroups_put_of(struct json_writer *w, const pid_t *pids, size_t n);
