/* hang: what everything that lives is doing, written down in DIR/hang before it is ended. */
#pragma once

#include "harness/run/engine.h"

/* Has it written down, and calls `then`: at once where all nodes are on this host, which takes some tens of
 * milliseconds, seconds at most; when the others have told, or have had their time, where they are not.
 * looked: it could be written. While that is awaited nothing new is begun. */
void hang_look(struct engine *e, void (*then)(void *arg, bool looked), void *arg);
/* A helper on another host has told of a process; a helper will tell no more. */
void hang_take(struct engine *e, const struct node *n, pid_t pid, const char *name,
               const struct buf *text);
void hang_over(struct engine *e);
