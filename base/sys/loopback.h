/* loopback: addresses of this host's own network, 127.0.0.0/8, dealt out without a file: who has
 * taken a range holds an abstract socket named after it, and the kernel gives it back when the
 * process ends, however it ends. */
#pragma once

#include "base/err.h"

#include <stdint.h>

enum { LOOPBACK_PREFIX_MAX = 16 };

/* Takes a range 127.x.y.0/24 that nobody in this network has and in which a server can listen on
 * the port; its first three numbers, "127.64.3", in ret_prefix. Returns a descriptor to be closed,
 * or -EADDRINUSE (the port is taken on all addresses at once) or another -errno. */
int loopback_claim(uint16_t port, char ret_prefix[LOOPBACK_PREFIX_MAX], struct err *err);
