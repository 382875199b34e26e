/* server: the embedded store, the subset of etcd's v3 JSON gateway that rankrun's client speaks,
 * over the key-value machine of agent/core/kv.h.
 *
 *     POST /v3/kv/{range,put,deleterange,txn,compaction}   /v3/lease/{grant,keepalive,revoke}
 *     POST /v3/watch      one stream per request: a line of JSON per batch of events
 *
 * Keys and values are base64, 64-bit integers strings, fields that are zero absent; errors are
 * {"error","code","message"} with etcd's texts and statuses (etcd 3.4, api/grpc-gateway). A write
 * is answered before its events go out. A watcher whose unsent bytes grow past a limit is cut off:
 * it comes back and re-reads. With server_demand a request that does not show the token is answered
 * with 401. With server_encrypt connections are TLS, and who speaks HTTP without it is answered
 * with 426; without, who can read the network reads the token, too.
 *
 *     POST /v3/rankrun/lifeline   ours alone, see agent/store/lifelines.h; not over TLS
 *     GET /metrics                the same, see agent/store/metrics.h */
#pragma once

#include "agent/base/err.h"
#include "agent/sys/loop.h"

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
/* How much clients may make it hold and keep, and how long a request may take to come; for tests.
 * What holds without: agent/store/ledger.h, agent/store/quota.h. */
struct server_limits {
    size_t held_max, kept_max; /* bytes: for connections, of keys and history */
    int64_t request_ns;
};
extern const struct server_limits SERVER_LIMITS;
void server_limit(struct server *s, const struct server_limits *limits);
/* From now on only who shows the token (agent/store/token.h; lent) is answered. */
void server_demand(struct server *s, const char *token);
/* Demands a token that nobody was told, and tells it to everybody who asks, sealed for our user
 * (agent/sys/munge.h). Where this host cannot seal, nothing changes. */
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
size_t server_held(const struct server *s);      /* bytes: see agent/store/ledger.h */
