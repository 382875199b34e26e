/* checkpoint: saving a state so that it survives, and finding the newest one that did.
 *
 * The format is in manifest.h. One rank writes what lies in one directory (checkpoints/places.h),
 * or several do, each a part, and that rank completes it. A round number fences: whoever finds that
 * a higher round of the same run has written here is a stale writer and stops. */
#pragma once

#include "scenarios/jobs/rankquake.h"
#include "scenarios/jobs/ranktrain/manifest.h"
#include "scenarios/jobs/ranktrain/state.h"

#include "base/err.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>

struct checkpoint_place {
    const char *dir; /* made when it is not there */
    const char *run_id;
    const struct model *model;
    const struct optimizer_kind *optimizer;
    const struct training *training; /* NULL: neither said nor asked about */
    int64_t round, seed;
    int world, keep;           /* keep: the newest so many stay, at least 1 */
    pthread_mutex_t *speaking; /* held while q is told something; NULL: one thread alone does */
};

/* Makes the directory where it is not there and opens it. */
int checkpoint_open(const struct checkpoint_place *p, struct err *err);

/* Called for each checkpoint that is passed over, with a sentence that says why; code -EXDEV: it is of
 * another training. With 0 it is gone on from, and the sentence says what makes another model of it. */
typedef void checkpoint_ignored_fn(void *arg, int code, const char *sentence);

/* Loads the newest complete checkpoint of this training that is not beyond max_step and not written
 * by a higher round of the same run; ret is of the place's model and optimizer. Returns 1 and its
 * path, 0 when there is none, or an error: the directory cannot be read; what ret holds then is of no
 * step. */
int checkpoint_load(const struct checkpoint_place *p, uint64_t max_step, struct state *ret,
                    char ret_path[PATH_MAX], checkpoint_ignored_fn *ignored, void *arg,
                    struct err *err);

/* The one of this step, from the directory as it is open. */
int checkpoint_load_step(const struct checkpoint_place *p, int dir, int64_t step, struct state *ret,
                         struct err *err);

/* Saves and tells q: begin, write, commit. Returns when the checkpoint is durable: 0; -ESTALE when
 * a higher round has written here; else a -errno. A complete checkpoint of that step which is there
 * already is kept. */
int checkpoint_save(const struct checkpoint_place *p, const struct state *s, struct rankquake *q,
                    struct err *err);

/* What a rank has written of each tensor. */
struct checkpoint_part {
    char sha256[MANIFEST_TENSORS][65];
    int64_t first[MANIFEST_TENSORS], bytes[MANIFEST_TENSORS]; /* first: floats before it */
};

/* The same in parts, one for each rank of those that save here. One of them, which keeps the
 * directory, begins; then each writes its own: of a whole state its share of equal length, else all
 * that it holds; and when all of it is durable, the first completes it. written[parts]. */
/* The memory for such a share. */
void checkpoint_slice_init(const struct checkpoint_place *p, int part, int parts,
                           struct state *ret);
int checkpoint_parts_begin(const struct checkpoint_place *p, uint64_t step, int parts,
                           struct rankquake *q, struct err *err);
int checkpoint_part_write(const struct checkpoint_place *p, const struct state *s, int part,
                          int parts, struct checkpoint_part *ret, struct err *err);
int checkpoint_parts_commit(const struct checkpoint_place *p, const struct state *s, int parts,
                            const struct checkpoint_part *written, struct rankquake *q,
                            struct err *err);
