/* server: the embedded store, the subset of etcd's v3 JSON gateway that rankrun's client speaks,
 * over the key-value machine of agent/core/kv.h.
 *
 *     POST /v3/kv/{range,put,deleterange,txn,compaction}   /v3/lease/{grant,keepalive,revoke}
 *     POST /v3/watch      one stream per request: a line of JSON per batch of events
 *
 * Keys and values are base64, 64-bit integers strings, fields that are zero absent; errors are
 * {"error","code","message"} with etcd's texts and statuses (etcd 3.4, api/grpc-gateway). A write
 * is answered before its events go out. What is long is written as it is read; who reads so slowly
 * that others wait is cut off: it comes back and re-reads. With server_demand a
 * request that does not show the token is answered with 401. With server_encrypt connections are
 * TLS, and who speaks HTTP without it is answered with 426; without, who can read the network reads
 * the token, too.
 *
 *     POST /v3/rankrun/lifeline   ours alone, see agent/store/lifelines.h; not over TLS
 *     GET /metrics                the same, see agent/store/metrics.h */
#pragma once

#include "base/err.h"
#include "base/sys/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server;
struct kv;
struct tls;

/* Listens on host:port (0: a free one) and serves kv, which is lent, from the loop. Whoever
 * else writes to kv calls server_changed after it. Returns NULL with err when it cannot listen. */
struct server *server_new(struct loop *l, struct kv *kv, const char *host, uint16_t port,
                          struct err *err);
struct server *server_free(struct server *s); /* closes every connection; NULL is allowed */
/* How much clients may make it hold and keep, and how long a request may take to come. What holds
 * without is made of SERVER_MEMORY_MB and of the open files that this process may have. */
struct server_limits {
    size_t held_max;   /* bytes: of requests and answers, see agent/store/limits/ledger.h, flow.h */
    size_t runs_max;   /* of keys, see agent/store/quota.h */
    size_t others_max; /* of keys that are no run's */
    size_t history_max; /* of events */
    int64_t request_ns;
    size_t connections_max; /* see agent/store/limits/crowd.h */
};
enum { SERVER_MEMORY_MB = 256 };
/* The limits of a store that is to need at most so much, connections_max without a number of one's
 * own being 0. */
void server_limits_of(struct server_limits *ret, size_t memory_mb, size_t connections_max);
void server_limit(struct server *s, const struct server_limits *limits);
/* Names, with commas between them, by which it may be asked for (agent/store/limits/page.h); lent.
 */
void server_allow(struct server *s, const char *names);
/* From now on only who shows the token (agent/store/token.h; lent) is answered. */
void server_demand(struct server *s, const char *token);
/* Demands a token that nobody was told, and tells it to everybody who asks, sealed for our user
 * (base/sys/munge.h). Where this host cannot seal, nothing changes. */
void server_draw_token(struct server *s);
/* From now on connections are TLS. Takes t over. clients_certified: it asks for certificates of
 * clients. */
void server_encrypt(struct server *s, struct tls *t, bool clients_certified);
/* One line for who runs it, when everybody on other hosts would be answered. */
void server_warn(const struct server *s);
/* Tells the watchers on the next turn. */
void server_changed(struct server *s);
uint16_t server_port(const struct server *s);
size_t server_watches(const struct server *s);   /* that are open now */
size_t server_lifelines(const struct server *s); /* the same */
size_t server_held(const struct server *s);      /* bytes: see agent/store/limits/ledger.h */
size_t server_agents(const struct server *s);    /* connections: see agent/store/limits/crowd.h */
