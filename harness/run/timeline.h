/* timeline: faults at their moment, undone at the end. */
#pragma once

#include "harness/run/engine.h"

/* A line that a worker has printed, or (pid 0) the program of a node. */
void timeline_heard(struct engine *e, const char *node, pid_t pid, const char *line);
/* As cluster_callbacks.called. */
bool timeline_called(struct engine *e, struct node *n, const struct watched_call *c);
/* As cluster_callbacks.asked. */
bool timeline_asked(struct engine *e, const struct store_request *r);
/* As cluster_callbacks.injected. */
void timeline_answer(struct engine *e, struct node *n, uint64_t token, const char *error);
/* The power of the node's host is off, or could not be taken or given back. False: no fault waits for
 * that. */
bool timeline_powered(struct engine *e, const struct node *n, const char *error);
/* As cluster_callbacks.far_seen. */
void timeline_seen_far(struct engine *e);
/* Undoes all that lasts: nodes or wire have begun to do so by themselves. */
void timeline_heal_all(struct engine *e);
/* One more entry, which outlives the run; stops: when it comes true the run stands still (hand.h). */
struct planned_entry;
void timeline_add(struct engine *e, const struct planned_entry *pa, bool stops);
/* The newest of these fires now. */
void timeline_fire(struct engine *e);
/* Ends what lasts of the entry with that id, which its record tells. -ENOENT: nothing of it does. */
int timeline_heal(struct engine *e, const char *id, struct err *err);
int64_t timeline_steady_ns(const struct engine *e);   /* 0: not yet */
void timeline_arm(struct engine *e);                  /* anew: who has to wait at what */
bool timeline_may_start_node(const struct engine *e); /* one may still come */
/* A node is off for as long as a fault lasts, and then on again. */
bool timeline_returns_node(const struct engine *e);
/* When all agents that still run are cut off from the store, only the end of that lets them end. */
void timeline_heal_the_last(struct engine *e);
