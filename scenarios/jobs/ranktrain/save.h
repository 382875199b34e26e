/* save: when and how the state of a training run is kept. What a checkpoint is and where it lies is
 * checkpoint.h's concern, who keeps which directory checkpoints/places.h's.
 *
 * Beside the training (--checkpoint-async) a save is told as begun by the thread that makes it, and
 * as committed when it is durable; the next one waits for it. In parts (--checkpoint-sharded, and
 * always where no rank has the whole state) the ranks agree behind the steps that follow: one
 * completes the checkpoint when all have written their part. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

/* Once the group has formed; again when it has formed anew. */
int save_open(struct trainer *t, struct err *err);

/* Called by every rank behind each step. Saves when it is time; behind the last step, and where all
 * are to save together because one is asked to end, it waits until all is durable. Returns 0 or an
 * error of checkpoint.h. */
int save_step(struct trainer *t, struct err *err);

/* A worker of an asynchronous server, which has been sent all of a state: it keeps it, on a disk that
 * the server does not see. */
int save_copy(struct trainer *t, const struct state *s, struct err *err);

/* Asked to end: this rank alone makes a last checkpoint of the step that it is at, if it keeps any
 * and has all of the state. */
int save_last(struct trainer *t, struct err *err);

/* What this rank has in memory is all of the state, and that of its step. */
bool save_has_all(const struct trainer *t);

/* Waits for what is being saved. */
void save_close(struct trainer *t);
