/* ledger: what the embedded store holds in memory for its connections: requests that have not come
 * whole, and answers that have not been taken. Both are others' to make long, so both are bounded:
 *
 * - A request that has begun, or a TLS handshake, must be whole after request_ns; its connection is
 * ended otherwise, be it ever so busy.
 * - All that is held together may not exceed held_max bytes, and half of that of those who are not
 * trusted; whoever holds most is ended, of those first.
 *
 * An account outlives its connection where nobody says ledger_close. It is never acted upon then: a
 * connection is known by its socket's cookie, which no other ever has. */
#pragma once

#include "agent/store/limits/bounds.h"

#include <stddef.h>
#include <stdint.h>

struct bufferevent;
struct crowd;
struct ledger;
struct loop;

struct ledger_limits {
    size_t held_max;
    int64_t request_ns;
};

/* Without limits, until they are set. bounds and crowd are lent. */
struct ledger *ledger_new(struct loop *l, struct bounds *bounds, struct crowd *crowd);
/* After all connections. NULL is allowed; returns NULL. */
struct ledger *ledger_free(struct ledger *l);
void ledger_set_limits(struct ledger *l, const struct ledger_limits *limits);

/* A new connection, before its first byte. */
void ledger_open(struct ledger *l, struct bufferevent *b);
/* A new one has begun something that costs n bytes, as a request that has begun. Its end is told by
 * ledger_close, before its memory is another's. */
void ledger_begin(struct ledger *l, struct bufferevent *b, size_t n);
void ledger_close(struct ledger *l, struct bufferevent *b);
/* It is an agent's. */
void ledger_trust(struct ledger *l, struct bufferevent *b);
/* A request of it, or what was begun, has come whole. */
void ledger_whole(struct ledger *l, struct bufferevent *b);

/* Bytes, of connections that are known to have ended too as long as nobody has looked. */
size_t ledger_held(const struct ledger *l);
