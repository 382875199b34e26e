/* store_operation: what a store is asked to do, read from the frames that pass: requests in plain HTTP
 * by the words of etcd's gateways, v3 in JSON and v2. Pure.
 *
 * A request begins with a segment of its own, as whoever speaks HTTP/1.1 asks once and waits for the
 * answer. What TCP sends again is no other request. TLS, gRPC and other protocols tell nothing. */
#pragma once

#include "faults/mechanism/frame.h"

/* X(NAME, its word in a scenario, what its path in v3 has) */
#define STORE_OPERATIONS(X)                                                                        \
    X(PUT, "put", "/kv/put ")                                                                      \
    X(RANGE, "range", "/kv/range ")                                                                \
    X(DELETE, "delete", "/kv/deleterange ")                                                        \
    X(TXN, "txn", "/kv/txn ")                                                                      \
    X(COMPACT, "compact", "/kv/compaction ")                                                       \
    X(GRANT, "lease-grant", "/lease/grant ")                                                       \
    X(KEEP_ALIVE, "keep-alive", "/lease/keepalive ")                                               \
    X(REVOKE, "lease-revoke", "/lease/revoke ")                                                    \
    X(WATCH, "watch", "/watch ")

enum store_operation {
    STORE_OPERATION_NONE = -1,
#define X(name, word, path) STORE_##name,
    STORE_OPERATIONS(X)
#undef X
        STORE_OPERATIONS_N
};
extern const char *const store_operation_names[]; /* NULL-ended */

enum { STORE_CONNECTIONS_MAX = 512 };

struct store_requests {
    struct {
        int client; /* a port of the wire */
        uint16_t tcp_port;
        uint32_t sequence;           /* of its newest request */
    } newest[STORE_CONNECTIONS_MAX]; /* the oldest first */
    int n;
};

/* A frame from this port of the wire to the store. */
enum store_operation store_requests_see(struct store_requests *s, int client,
                                        const struct frame *f);
