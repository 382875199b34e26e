/* gateway: one question to a store, in the words of etcd's JSON gateway (etcd v3 API), which
 * rankrun's own store speaks too. The token that the environment says (RANKRUN_STORE_TOKEN) is
 * shown. No TLS.
 *
 * Blocking, each step for 2 s at most: for a process that does nothing else, or for a run that
 * hangs anyway. */
#pragma once

#include "agent/base/buf.h"
#include "agent/base/err.h"

#include <stdint.h>

/* Asks from the network namespace of the calling process; the body of a good answer is put behind
 * what is in ret. 0, or negative with a sentence, as http_ask. err is needed. */
int gateway_ask(const char *addr, uint16_t port, const char *path, const char *question,
                struct buf *ret, struct err *err);
