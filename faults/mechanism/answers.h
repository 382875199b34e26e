/* answers: which frames are the store's answers to requests that have passed before, read as HTTP on
 * plain connections. Pure.
 *
 * A request is known by its first line, an answer to a transaction by what it says: that it was
 * applied. A watch has no answer. */
#pragma once

#include "faults/mechanism/frame.h"

enum { ANSWERS_PORTS_MAX = 64, ANSWERS_OPEN_MAX = 512 };

struct answers_due {
    struct {
        int client; /* a port of the wire */
        uint16_t tcp_port;
    } open[ANSWERS_OPEN_MAX]; /* who has asked and not been answered, the oldest first */
    int n;
};

/* A frame from one port of the wire to another. True: it answers a request that was seen; all: of
 * whatever kind, else a transaction that was applied. */
bool answers_see(struct answers_due *s, int from, int to, const struct frame *f, bool all);
