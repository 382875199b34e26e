/* dead_man: what the node helpers, the wire and the keeper of control groups do when the harness is
 * there and says nothing: it was stopped, or its loop stands still. One that has died closes its
 * sockets, which they see at once.
 *
 * The harness says {op: beat} to each of them again and again, and all else that it says counts as
 * well. Who hears nothing for as long as limits.dead_man undoes what lasts, and says so: {op:
 * healed, undone: [..]}. What could not say anything because the machine stood still is no silence:
 * who was late itself, or has something to read, waits anew. */
#pragma once

#include "base/sys/loop.h"

struct dead_man;

typedef void dead_man_fn(void *arg, int64_t silent_ns);

/* Calls fn after every silence of after_ns at the socket `control`, once in each; 0: never. Counting
 * begins now. */
struct dead_man *dead_man_new(struct loop *l, int control, int64_t after_ns, dead_man_fn *fn,
                              void *arg);
void dead_man_heard(struct dead_man *d);            /* NULL is allowed */
struct dead_man *dead_man_free(struct dead_man *d); /* NULL is allowed; returns NULL */

/* How often the harness must say something: a few beats may be late or lost. */
int64_t dead_man_beat_ns(int64_t after_ns);
