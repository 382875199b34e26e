/* manifest: what makes a checkpoint complete. A documented format; other programs read it too.
 *
 * A checkpoint of step 25 in DIR is the directory DIR/step-00000025 (the step in decimal, at least
 * eight digits, filled up with zeros) with
 *
 *     weights.f32     61,706 little-endian IEEE 754 floats, in the order of lenet.h
 *     velocity.f32    as many: the momentum of each weight
 *     manifest.json   one JSON object, at most 64 KiB:
 *
 *     {"format": "ranktrain-checkpoint",
 *      "version": 1,
 *      "step": 25,                     updates applied; equal to the number in the directory's name
 *      "round": 3,                     RANKRUN_ROUND of the writer, 0 where there was none
 *      "run_id": "job-17",             TORCHELASTIC_RUN_ID of the writer, "" where there was none
 *      "world_size": 6,                of the round that wrote it
 *      "seed": 1,                      --seed
 *      "parameters": 61706,
 *      "model": "<64 hex>",            SHA-256 of weights.f32; of the last step it is the
 *                                      model hash
 *      "files": [{"name": "weights.f32", "bytes": 246824, "sha256": "<64 hex>"},
 *                {"name": "velocity.f32", "bytes": 246824, "sha256": "<64 hex>"}]}
 *
 * It is complete when the manifest is such an object, its step is that of the directory's name, and
 * every file it lists is there with that length and that SHA-256 (lower-case hex). Fields that are
 * not known are to be ignored; files that are not listed do not belong to it.
 *
 * It is written under a name that begins with a dot, all files and then that directory are synced,
 * it is renamed to its final name, and DIR is synced. So a directory with the final name that is
 * not complete was damaged later, or its disk lost what had been synced. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

enum { MANIFEST_FILES = 2, MANIFEST_BYTES_MAX = 64 * 1024, MANIFEST_VERSION = 1 };

#define MANIFEST_NAME     "manifest.json"
#define MANIFEST_WEIGHTS  "weights.f32"
#define MANIFEST_VELOCITY "velocity.f32"

struct manifest {
    int64_t step, round, world_size, seed, parameters;
    char run_id[128], model[65];
    struct manifest_file {
        char name[32], sha256[65];
        int64_t bytes;
    } files[MANIFEST_FILES]; /* weights, velocity */
};

void manifest_write(const struct manifest *m, struct buf *out);

/* Returns 0, or -EBADMSG with a sentence that says what is wrong with the text. */
int manifest_read(const char *text, size_t n, struct manifest *ret, struct err *err);
