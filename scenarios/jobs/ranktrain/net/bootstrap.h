/* bootstrap: how the ranks of a round find one another.
 *
 * Rank 0 listens on MASTER_PORT. Every other rank connects, says who it is and where its own door
 * is; rank 0 refuses whoever is of another run, an older round, another world size or other options
 * and tells it so. When all are there rank 0 gives everybody the table of addresses and a session
 * id drawn for this round, which every later connection carries; then it shares what it decides
 * (the state to resume from). Between the ranks of a group nothing is trusted but the session id.
 *
 * A rank that goes while the group forms is noticed at once. */
#pragma once

#include "scenarios/jobs/ranktrain/net/door.h"
#include "scenarios/jobs/ranktrain/net/link.h"

#include "base/err.h"

#include <stdbool.h>

enum { BOOTSTRAP_MEMBERS = 72, GROUP_TOKEN = 128 };

/* Who takes part, and where their doors are. */
struct peer_group {
    int rank, world;
    unsigned char session[DOOR_SESSION];
    struct link_address peers[BOOTSTRAP_MEMBERS]; /* not one's own */
    struct door door;                             /* one's own */
    bool pairs; /* every two ranks can send one another something: set before a collective opens */
    unsigned char token[GROUP_TOKEN]; /* of collectives that have one */
    int links[BOOTSTRAP_MEMBERS]; /* open until bootstrap_end: rank 0's to each member, the others'
                                     [0] to rank 0; else -1. A link at its end, with nothing to
                                     read before it: that rank has left. */
};

struct bootstrap_request {
    int rank, world;
    const char *master_addr;
    int master_port;
    const char *run_id;
    int64_t round;
    unsigned char job[DOOR_DIGEST]; /* of all options that must be equal on all ranks */
    struct link_wait wait;
};

struct bootstrap {
    struct bootstrap_request request;
    struct peer_group group;
    struct door master; /* rank 0's, on MASTER_PORT; the ring has doors of its own, so that the port
                           carries the forming of groups and nothing else */
};

/* Forms the group. Returns 0; -ECANCELED when woken; else an error whose sentence names the peer.
 * bootstrap_end in either case. */
int bootstrap_join(struct bootstrap *ret, const struct bootstrap_request *request, struct err *err);

/* Copies n bytes from rank 0 to all. */
int bootstrap_share(struct bootstrap *b, void *data, size_t n, struct err *err);

/* The same from any rank, by way of rank 0. */
int bootstrap_share_from(struct bootstrap *b, int rank, void *data, size_t n, struct err *err);

/* Copies n bytes of every rank to all, in the order of ranks: ret has room for world * n. */
int bootstrap_exchange(struct bootstrap *b, const void *mine, size_t n, void *ret, struct err *err);

/* Returns when all ranks have called it. */
int bootstrap_meet(struct bootstrap *b, struct err *err);

/* Closes what is still open, the doors too. */
void bootstrap_end(struct bootstrap *b);
