/* writer: a thread that saves while the training goes on.
 *
 * It has a copy of the state of its own, made when a save begins, so that memory for one state more
 * is all that it costs, and one save at a time: who begins the next waits for the one before. An
 * error of its is the next caller's. */
#pragma once

#include "scenarios/jobs/rankquake.h"
#include "scenarios/jobs/ranktrain/checkpoint.h"

#include "base/err.h"

struct checkpoint_writer;

/* The place stays the caller's; place->speaking guards q. */
int writer_new(struct checkpoint_writer **ret, const struct checkpoint_place *p,
               struct rankquake *q, struct err *err);
struct checkpoint_writer *
writer_free(struct checkpoint_writer *w); /* waits; NULL is allowed; returns NULL */

/* Copies the state and begins. The writer must be idle. */
void writer_save(struct checkpoint_writer *w, const struct state *s);
void writer_save_part(struct checkpoint_writer *w, const struct state *s, int part, int parts);

/* Returns 1 when it is idle, 0 when it is at work, or the error that the last save ended with, once. */
int writer_poll(struct checkpoint_writer *w, struct err *err);

/* Until it is idle: 0 or that error. */
int writer_wait(struct checkpoint_writer *w, struct err *err);

/* Of the last save, when idle. */
const struct state *writer_state(const struct checkpoint_writer *w);
const struct checkpoint_part *writer_part(const struct checkpoint_writer *w);
