/* collective: how the ranks sum. One file per way ends in one const struct and has one line in
 * COLLECTIVES, in alphabetical order. */
#pragma once

#include "scenarios/jobs/ranktrain/net/bootstrap.h"

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct collective {
    const char *name, *summary;

    /* What can be known before anybody is met: libraries, devices, variables. NULL: nothing. */
    int (*prepare)(struct err *err);

    /* Draws what the ranks of one group, and of no other, know one another by. Called by rank 0
     * alone, once per process, when all ranks have joined; the others get it as group.token. NULL:
     * the session id of the group is enough. */
    int (*token)(unsigned char ret[GROUP_TOKEN], struct err *err);

    /* Connects the ranks of a group, all of which call it. Returns 0 or an error whose sentence
     * names the peer. What has a token may watch group.links meanwhile, and all ranks wait for
     * all others before they go on: it may have no other way to notice that one has left. */
    int (*open)(void **ret, struct peer_group *g, const struct link_wait *w, struct err *err);

    /* Begins to replace data[0..n) on every rank by the sum over the ranks. data is in use until
     * poll has answered 1 or an error. One at a time; all ranks start the same ones. */
    int (*start)(void *c, int64_t *data, size_t n, int64_t deadline_ns, struct err *err);

    /* Waits at most timeout_ms (-1: as long as it takes). Returns 1: done, 0: not yet, -ECANCELED:
     * woken, or an error whose sentence names the peer; -ETIMEDOUT when the deadline has passed. */
    int (*poll)(void *c, int timeout_ms, struct err *err);

    /* Gives up at once: the peers notice. Nothing but close may follow. */
    void (*abort)(void *c);

    /* NULL is allowed. Returns 0, or -ETIMEDOUT when something does not end: then neither what is
     * left of it nor its device may be touched any more, and the process must leave by _exit. */
    int (*close)(void *c, struct err *err);
};

#define COLLECTIVES(X) X(tcp_ring)

#define COLLECTIVE_DECLARE(name) extern const struct collective collective_##name;
COLLECTIVES(COLLECTIVE_DECLARE)
#undef COLLECTIVE_DECLARE
