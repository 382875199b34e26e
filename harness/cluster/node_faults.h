/* node_faults: faults that run in a node, and which of them are in force there: what lasts is undone
 * when the harness says so, or when it has said nothing for too long (dead_man.h). */
#pragma once

#include "faults/target.h"
#include "harness/carrier/channel.h"

struct node_faults {
    struct message *in_force; /* that brought them in force, each as it came */
    size_t n;
    /* Of the node, for what a helper does to it as a whole (fault_is_of_helper); NULL: that does not run here. */
    const struct node_ops *ops;
    void *node;
};

/* Does what a `fault` of the harness says (node_helper.h); program: a pidfd of the node's. What
 * lasts takes the message. 0 or a -errno; to undo what is not in force, or on somebody who has ended,
 * is no error. */
int node_faults_do(struct node_faults *f, struct message *m, int program, struct err *err);
/* Undoes all. Appends {fault, name, error|null} of each to the array that w is in. */
void node_faults_undo(struct node_faults *f, int program, struct json_writer *w);
void node_faults_fini(struct node_faults *f);
