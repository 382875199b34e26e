/* checkpoints: what is complete in a checkpoint directory, by the harness's own reading of it
 * (manifest and checksums), never by what the job says. The format is described in
 * scenarios/jobs/ranktrain/manifest.h; this reader shares no code with the writer. */
#pragma once

#include "base/json.h"
#include "base/sys/folder.h"

/* Remembers what it has verified, so that each checkpoint is hashed once while it does not change.
 */
struct checkpoints;

/* within: the run directory. What lies there a job may have written, so it is reached through the
 * folder, which must outlive the checkpoints, and nothing on the way is followed. */
struct checkpoints *checkpoints_new(const char *dir, const struct folder *within);
struct checkpoints *checkpoints_free(struct checkpoints *c); /* NULL is allowed; returns NULL */

/* Reads and verifies what is new. Worth doing when a checkpoint has just been committed, so that
 * little is left to hash when a round ends and every millisecond is measured. */
void checkpoints_refresh(struct checkpoints *c);

/* Reads the directory and puts into the open object: dir, newest (a step, -1: none complete),
 * complete:[{step, round, path, model?}], damaged:[{path, why}]. model is the SHA-256 of the weights
 * as they were read here, where the manifest names a model. A directory that is not there is empty.
 */
void checkpoints_put(struct checkpoints *c, struct json_writer *w);
