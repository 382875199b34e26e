/* far_calls: system calls of programs on other hosts, each of which waits there until we let it go on.
 * Its helper has said what we could not read: its files (node_helper.h, `called`). Of this room only. */
#pragma once

#include "harness/cluster/parts.h"

/* What all helpers are to wait with, as the member `calls` of an `arm`. */
void far_calls_put_wanted(const struct cluster *c, struct json_writer *w);
void far_calls_forget_wanted(struct cluster *c);

/* Those of one node. */
struct far_call;
struct far_calls {
    struct far_call *v;
    size_t n;
};
void far_calls_forget(struct far_calls *f); /* the node has ended, and they with it */

/* A `called`: which call it is. The file names are kept until it goes on. */
void far_calls_take(struct far_calls *f, const struct node *n, const struct json *m,
                    struct watched_call *ret);
/* NULL: no such call waits. */
const struct far_call *far_calls_find(const struct far_calls *f, uint64_t id);
const char *far_call_from(const struct far_call *c);
const char *far_call_to(const struct far_call *c);
int64_t far_call_bytes(const struct far_call *c);
/* It may go on; one that has gone is no matter. */
void far_calls_pass(struct far_calls *f, struct node *n, uint64_t id);
