/* node_calls: system calls of a node's program, watched by its helper on another host (call_watch.h).
 * Who connects is met by the host's cut; who makes a call that the harness waits for is told, and
 * waits until the harness lets it go on. Then the rules on the node's disks say what becomes of it. All others
 * go on at once, so that a job which opens a thousand files costs the way to the harness nothing. */
#pragma once

#include "base/json.h"
#include "base/sys/loop.h"
#include "harness/carrier/carrier.h"
#include "harness/host/host_cut.h"

struct node_calls;
struct held_rules;

/* before: what else is to be told before a call is; may be NULL. */
struct node_calls *node_calls_new(struct loop *l, struct carrier *to, struct host_cut *cut,
                                  void (*before)(void *arg), void *arg);
struct node_calls *node_calls_free(struct node_calls *c); /* NULL is allowed; returns NULL */
/* The call_watch of a program, which it takes, in place of the one before; -1: none. */
void node_calls_watch(struct node_calls *c, int watch);
/* The rules on the disks of the node, which stay its own; what they have struck is told. */
struct held_rules *node_calls_rules(struct node_calls *c);
/* An `arm` of the harness: which calls it waits for, from now on. Who waits already goes on waiting. */
void node_calls_arm(struct node_calls *c, const struct json *order);
/* A `pass` of the harness. */
void node_calls_pass(struct node_calls *c, const struct json *order);
/* The harness is silent: nobody waits any more, and nobody will. */
void node_calls_release_all(struct node_calls *c);
