/* door: a listening socket that lets in only who is expected.
 *
 * A caller's first words are a hello of fixed size. Callers that say something else are turned away
 * at once, callers that say nothing keep nobody else waiting: a stale worker of an old round, a
 * port scanner or a second job on the same port must not disturb this one. */
#pragma once

#include "scenarios/jobs/ranktrain/net/link.h"

#include "base/err.h"

#include <stdint.h>

#define DOOR_MAGIC UINT64_C(0x3230414e54524b52) /* "RKRTNA02": also tells the byte order */

enum { DOOR_SESSION = 16, DOOR_DIGEST = 32, DOOR_CALLERS = 64 };
enum door_purpose { DOOR_JOIN = 1, DOOR_RING = 2, DOOR_PAIR = 3 };

struct door_hello {
    uint64_t magic;
    uint32_t purpose;
    int32_t rank, world;
    int32_t port; /* join: where the caller's own door is */
    int64_t round;
    unsigned char run[DOOR_DIGEST];      /* of the run id */
    unsigned char job[DOOR_DIGEST];      /* join: of all that must be equal on all ranks */
    unsigned char session[DOOR_SESSION]; /* ring, pair: drawn by rank 0 for this round */
};

struct door {
    int listener;
    int n;
    struct door_caller {
        int fd;
        size_t have;
        struct door_hello hello;
    } callers[DOOR_CALLERS];
};

/* Listens on all addresses; port 0 picks a free one. */
int door_open(struct door *ret, int port, struct err *err);
void door_close(struct door *d);

/* Waits for the next hello. Returns a descriptor, which becomes the caller's, or an error of
 * link.h. watched are descriptors on which nobody should speak or hang up meanwhile: if one does,
 * returns -EPIPE and *ret_gone is its index. */
int door_wait(struct door *d, const struct link_wait *w, const int *watched, int n_watched,
              struct door_hello *ret, int *ret_gone);
