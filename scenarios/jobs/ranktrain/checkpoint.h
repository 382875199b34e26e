/* checkpoint: saving a state so that it survives, and finding the newest one that did.
 *
 * The format is in manifest.h. Only rank 0 writes. A round number fences: whoever finds that a
 * higher round of the same run has written here is a stale writer and stops. */
#pragma once

#include "scenarios/jobs/rankquake.h"
#include "scenarios/jobs/ranktrain/state.h"

#include "base/err.h"

#include <limits.h>
#include <stdint.h>

struct checkpoint_place {
    const char *dir; /* made when it is not there */
    const char *run_id;
    const struct model *model;
    const struct optimizer_kind *optimizer;
    int64_t round, seed;
    int world, keep; /* keep: the newest so many stay, at least 1 */
};

/* Called for each checkpoint that is passed over, with a sentence that says why. */
typedef void checkpoint_ignored_fn(void *arg, const char *sentence);

/* Loads the newest complete checkpoint that is not beyond max_step and not written by a higher
 * round of the same run; ret is of the place's model and optimizer. Returns 1 and its path, 0 when
 * there is none, or an error: the directory cannot be read, or the checkpoint is of another training
 * (-EXDEV). */
int checkpoint_load(const struct checkpoint_place *p, uint64_t max_step, struct state *ret,
                    char ret_path[PATH_MAX], checkpoint_ignored_fn *ignored, void *arg,
                    struct err *err);

/* Saves and tells q: begin, write, commit. Returns when the checkpoint is durable: 0; -ESTALE when
 * a higher round has written here; else a -errno. A complete checkpoint of that step which is there
 * already is kept. */
int checkpoint_save(const struct checkpoint_place *p, const struct state *s, struct rankquake *q,
                    struct err *err);
