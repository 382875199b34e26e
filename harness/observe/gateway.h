/* gateway: one question to a store, in the words of etcd's JSON gateway (etcd v3 API), which
 * rankrun's own store speaks too. The token that the environment says (RANKRUN_STORE_TOKEN) is
 * shown. No TLS, no library.
 *
 * Blocking, each step for GATEWAY_WAIT_S at most: for a process that does nothing else, or for a
 * run that hangs anyway. */
#pragma once

#include "agent/base/buf.h"
#include "agent/base/err.h"

#include <stdint.h>

enum { GATEWAY_WAIT_S = 2 };

/* Asks from the network namespace of the calling process; the body of an answer of HTTP status 200
 * is put behind what is in ret. 0, or negative with a sentence: -EAGAIN it is too slow, -EPROTO
 * that is no answer of a store, else what the kernel says. err is needed. */
int gateway_ask(const char *addr, uint16_t port, const char *path, const char *question,
                struct buf *ret, struct err *err);
