/* gateway: one question to a store, in the words of etcd's JSON gateway (etcd v3 API), which
 * rankrun's own store speaks too. The token that the environment says (RANKRUN_STORE_TOKEN) is
 * shown. No TLS.
 *
 * Blocking, each step for 2 s at most: for a process that does nothing else, or for a run that
 * hangs anyway. */
#pragma once

#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

/* Asks from the network namespace of the calling process. The answer, which is in a; or NULL with a
 * sentence, and as its code those of http_ask, or -EPROTO: it is no JSON. err is needed. */
const struct json *gateway_ask(struct arena *a, const char *addr, uint16_t port, const char *path,
                               const char *question, struct err *err);

/* Watches all keys from this revision until there is news: the events that came since, or that they
 * are compacted. 0; -EPROTO or as http_ask: neither came. */
int gateway_watch_first(struct arena *a, const char *addr, uint16_t port, int64_t revision,
                        bool *ret_compacted, struct err *err);
