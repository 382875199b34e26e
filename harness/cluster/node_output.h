/* node_output: what a node's program prints, where no file of the harness's can be given to it: read
 * from a pipe and told in pieces as it comes, the program's end never before what it had printed. */
#pragma once

#include "base/sys/loop.h"

#include <stddef.h>

typedef void node_output_fn(void *arg, const char *bytes, size_t n);

struct node_output {
    struct loop_source *source; /* NULL: nothing is read */
    int fd;
    node_output_fn *fn;
    void *arg;
};
#define NODE_OUTPUT_NONE ((struct node_output){.fd = -1})

/* Returns the end that the program writes to, the caller's, or a -errno. What was read before is
 * forgotten. */
int node_output_begin(struct node_output *o, struct loop *l, node_output_fn *fn, void *arg,
                      struct err *err);
void node_output_pause(struct node_output *o, bool paused); /* the harness takes nothing more */
void node_output_drain(struct node_output *o);              /* tells what has been printed by now */
void node_output_end(struct node_output *o);
