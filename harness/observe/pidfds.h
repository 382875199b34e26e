/* pidfds: the deaths of workers, seen by the kernel and nobody else.
 *
 * A worker's end is noticed on its pidfd; its exit status is read while it is a zombie, or asked of
 * the pidfd once its parent has reaped it (Linux >= 6.15). Where neither works it is unknown. */
#pragma once

#include "harness/observe/observe.h"

struct pidfds;

/* ended is called before the worker-exit record is written, so that the last messages of the
 * process can be read first. */
struct pidfds *pidfds_new(struct loop *l, struct recorder *rec, void (*ended)(void *arg, pid_t pid),
                          void *arg);
struct pidfds *pidfds_free(struct pidfds *p);

/* Takes pidfd. Watching a pid that is watched already closes it again. */
void pidfds_watch(struct pidfds *p, const char *node, pid_t pid, int pidfd);
int pidfds_find(const struct pidfds *p, pid_t pid); /* -1: none that lives */
void pidfds_drain(struct pidfds *p);                /* notes every end that has already come */
