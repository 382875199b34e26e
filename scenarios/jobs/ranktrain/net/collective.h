/* collective: how the ranks sum. One file per way ends in one const struct and has one line in
 * COLLECTIVES, in alphabetical order. */
#pragma once

#include "scenarios/jobs/ranktrain/net/bootstrap.h"

#include "agent/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct collective {
    const char *name, *summary;

    /* Connects the ranks of a group, all of which call it. Returns 0 or an error whose sentence
     * names the peer. */
    int (*open)(void **ret, struct group *g, const struct link_wait *w, struct err *err);

    /* Begins to replace data[0..n) on every rank by the sum over the ranks. data is in use until
     * poll has answered 1 or an error. One at a time; all ranks start the same ones. */
    int (*start)(void *c, int64_t *data, size_t n, int64_t deadline_ns, struct err *err);

    /* Waits at most timeout_ms (-1: as long as it takes). Returns 1: done, 0: not yet, -ECANCELED:
     * woken, or an error whose sentence names the peer; -ETIMEDOUT when the deadline has passed. */
    int (*poll)(void *c, int timeout_ms, struct err *err);

    /* Gives up at once: the peers notice. Nothing but close may follow. */
    void (*abort)(void *c);
    void (*close)(void *c); /* NULL is allowed */
};

#define COLLECTIVES(X) X(tcp_ring)

#define COLLECTIVE_DECLARE(name) extern const struct collective collective_##name;
COLLECTIVES(COLLECTIVE_DECLARE)
#undef COLLECTIVE_DECLARE
