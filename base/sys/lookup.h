/* lookup: the addresses of a host's name, found beside the loop.
 *
 * A name is looked up as the system does it (nsswitch.conf), which may ask a network and take as
 * long as that takes: so by a thread of its own, which sees no signals. */
#pragma once

#include "base/sys/loop.h"
#include "base/sys/tcp.h"

enum { LOOKUP_MAX = 8 }; /* addresses */

struct lookup;

/* The end of a look-up: n addresses, or none and why, a sentence part for people. They live until
 * it returns. */
typedef void lookup_fn(void *arg, const struct tcp_address *found, int n, const char *why);

/* fn is called once, from the loop, never from inside; the look-up is gone by then. NULL with err:
 * no thread can be had. */
struct lookup *lookup_begin(struct loop *l, const struct tcp_endpoint *to, lookup_fn *fn, void *arg,
                            struct err *err);
/* fn is not called any more. NULL is allowed; returns NULL. */
struct lookup *lookup_cancel(struct lookup *k);
