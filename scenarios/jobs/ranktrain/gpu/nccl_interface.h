/* nccl_interface: what NCCL_SOCKET_IFNAME asks for, held against the interfaces there are. */
#pragma once

#include "base/err.h"

/* True when the list names that interface, as NCCL reads it: "eth,ib" are beginnings of names,
 * "=eth0" is a whole name, "^docker" everything but that; ":1" behind a name is a port of it and
 * plays no part here. */
int nccl_interface_fits(const char *list, const char *name);

/* Returns 0 when list (NULL or "": nothing was asked for) leaves at least one interface that is up
 * and has an address, else -ENODEV and a sentence with the names that there are. */
int nccl_interface_check(const char *list, struct err *err);
