/* node_dump: what all processes of a node are doing, written down by its helper for a harness on
 * another host (process_dump.h). A child of the helper's reads it, so that whatever hangs there does not
 * hang the helper. */
#pragma once

#include "base/sys/loop.h"
#include "harness/carrier/carrier.h"

struct node_dump;

/* Begins to tell {op: dumped, pid, name, bytes} of each process, the helper first, and says {op: dumped,
 * done, error|null} when that is all, or when budget_ns are over. Not before it has ended it is begun
 * again. NULL with err: it could not be begun, and nothing is said. */
struct node_dump *node_dump_begin(struct loop *l, struct carrier *to, int64_t budget_ns,
                                  struct err *err);
bool node_dump_is_over(const struct node_dump *d);
struct node_dump *node_dump_free(struct node_dump *d); /* NULL is allowed; returns NULL */
