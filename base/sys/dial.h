/* dial: connections to one host and port, by whichever of its addresses answers.
 *
 * A name is looked up as the system does it (nsswitch.conf), which may ask a network and take as
 * long as that takes: so by a thread, on its own, and never twice at once. What it said is good for
 * a minute, or for a second once none of its addresses has answered. A number needs no thread.
 *
 * Addresses are tried in the system's order. Where one has not answered within 250 ms the next one
 * is tried beside it (RFC 8305, 5), and the first to answer is taken. There is no other deadline:
 * who has waited long enough cancels. */
#pragma once

#include "base/sys/loop.h"
#include "base/sys/tcp.h"

struct dialer;
struct dial;

/* The end of a dial: fd is connected, non-blocking, and the callee's; or it is -1 and why a
 * sentence part for people: "cannot connect to 10.0.0.1 port 29400: Connection refused". */
typedef void dial_fn(void *arg, int fd, const char *why);

/* Never NULL (out of memory aborts). */
struct dialer *dialer_new(struct loop *l, const struct tcp_endpoint *to);
/* Cancels what is left. NULL is allowed; returns NULL. */
struct dialer *dialer_free(struct dialer *d);

/* fn is called once, from the loop, never from inside dial_begin. From inside it everything may be
 * done but to free the dialer. Never NULL. */
struct dial *dial_begin(struct dialer *d, dial_fn *fn, void *arg);
/* fn is not called any more. NULL is allowed; returns NULL. */
struct dial *dial_cancel(struct dial *d);
/* What takes so long: "looking up host 'a'" or "connecting to a port 29400". Until the next call.
 */
const char *dial_doing(const struct dial *d);
