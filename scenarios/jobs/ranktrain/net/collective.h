/* collective: how the ranks exchange what they have. One file per way ends in one const struct and
 * has one line in COLLECTIVES, in alphabetical order. */
#pragma once

#include "scenarios/jobs/ranktrain/net/bootstrap.h"

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum collective_op {
    COLLECTIVE_ALL_REDUCE,     /* data becomes, on every rank, the sum over the ranks */
    COLLECTIVE_REDUCE_SCATTER, /* the same, of a rank's own part alone; the rest is of no use */
    COLLECTIVE_ALL_GATHER,     /* every rank's own part of data comes to all */
    COLLECTIVE_BROADCAST,      /* data becomes that of peer */
    COLLECTIVE_SEND,           /* to peer; groups with pairs alone */
    COLLECTIVE_RECEIVE         /* from peer, or from whoever has sent first */
};

enum { COLLECTIVE_ANY = -1 };

/* All ranks start the same ones in the same order, but for sending and receiving. */
struct collective_call {
    enum collective_op op;
    void *data;           /* the caller's, in use until poll has answered 1 or an error */
    size_t bytes;         /* as many on all ranks; of sums: int64_t */
    const size_t *bounds; /* reduce-scatter and all-gather: rank r has the bytes from bounds[r] to
                             bounds[r + 1] of data, which may be none; of sums: whole numbers */
    int peer;             /* COLLECTIVE_ANY becomes the rank from which it came */
    int64_t deadline_ns;
};

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

    /* Begins it. call stays in use until poll has answered 1 or an error; one at a time. Returns 0;
     * -ENOTSUP where there is no such exchange; or an error. */
    int (*start)(void *c, struct collective_call *call, struct err *err);

    /* Waits at most timeout_ms (-1: as long as it takes). Returns 1: done, 0: not yet, -ECANCELED:
     * woken, or an error whose sentence names the peer; -ETIMEDOUT when the deadline has passed. */
    int (*poll)(void *c, int timeout_ms, struct err *err);

    /* A rank has gone, and the others go on by sending and receiving: it is asked for nothing more,
     * COLLECTIVE_ANY is somebody else. NULL: a group does not outlive a rank. */
    void (*forget)(void *c, int rank);

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
