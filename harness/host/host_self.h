/* host_self: who we are on the host that we are on, for lists of what nothing may be done on. */
#pragma once

#include "base/arena.h"
#include "base/json.h"

/* Strings live in the arena. The user's name is "?" where the host does not know one. */
const char *host_self_name(struct arena *a);
const char *host_self_user(struct arena *a);
/* Those of all cards, IPv4 and IPv6, NULL-ended. */
const char *const *host_self_addresses(struct arena *a);
/* Adds members host, user, addresses, and kernel: two names of one host have the same kernel and the same network
 * (host_facts.h). */
void host_self_put(struct json_writer *w);
