/* output: what workers print, taken for events.
 *
 * Each line that matches an expression of the scenario's observe: becomes a record of source job,
 * of the same kind and with the same fields as an event, and from: "output": a claim. Every line is
 * handed on too, for triggers that wait for one. A worker that sends events itself is believed
 * about itself: of the kinds it has sent nothing is taken from its output. What comes when a worker
 * has ended (from a child that it left) is no event. */
#pragma once

#include "harness/observe/lines.h"
#include "harness/observe/observe.h"
#include "harness/scenario/scenario.h"

struct output_reader;

/* pid 0: of the node's own program, the agent or the store. */
typedef void output_fn(void *arg, const char *node, pid_t pid, const char *line);

/* s, node names and what fn needs must outlive it; rec's listener may be told of records from
 * within the loop. NULL with err when this host cannot watch files. */
struct output_reader *output_new(struct loop *l, struct recorder *rec, const struct scenario *s,
                                 output_fn *fn, void *arg, struct err *err);
struct output_reader *output_free(struct output_reader *o); /* NULL is allowed; returns NULL */

/* Takes fd, a file that is open for reading. The program of a node (pid 0) has one file for all its
 * lives: asked again for it, nothing is followed twice. 0 or -errno. */
int output_follow(struct output_reader *o, int fd, const char *node, pid_t pid, struct err *err);
/* A worker has ended: what it had printed becomes records now, later lines of it do not. */
void output_last_words(struct output_reader *o, pid_t pid);
/* A worker has sent an event itself. */
void output_overruled(struct output_reader *o, const struct record *event);
/* Reads what there is, and writes what came of it into the history: kind observed. */
void output_end(struct output_reader *o);
