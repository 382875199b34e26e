/* manifest: what makes a checkpoint complete. A documented format; other programs read it too.
 *
 * A checkpoint of step 25 in DIR is the directory DIR/step-00000025 (the step in decimal, at least
 * eight digits, filled up with zeros) with
 *
 *     weights.f32     little-endian IEEE 754 floats in the order of model.h; LeNet-5 has 61,706
 *     velocity.f32    the momentum of each trained one; with Adam there are first_moment.f32 and
 *                     second_moment.f32 instead
 *     or, of a sharded one, each of them in parts: weights.000-of-004.f32 ...
 *     manifest.json   one JSON object, at most 64 KiB:
 *
 *     {"format": "ranktrain-checkpoint",
 *      "version": 3,                   1 and 2 (in parts) do not say the fields from mode to parts
 *      "step": 25,                     updates applied; equal to the number in the directory's name
 *      "round": 3,                     RANKRUN_ROUND of the writer, 0 where there was none
 *      "run_id": "job-17",             TORCHELASTIC_RUN_ID of the writer, "" where there was none
 *      "world_size": 6,                of the round that wrote it
 *      "seed": 1,                      --seed
 *      "network": "lenet",             --network; where it is not said: lenet
 *      "width": 6,                     --width, resolved; where it is not said: 6
 *      "optimizer": "sgd",             --optimizer; where it is not said: sgd
 *      "mode": "ddp",                  --mode, "ps-async" with --ps-async; any other may go on from it
 *      "dataset": "fashion-mnist",     --dataset
 *      "images": 60000,                that it is trained on
 *      "images_sum": 1738202144,       CRC-32 of the labels and of each image's CRC-32; 0: not known
 *      "batch_size": 96, "shards": 12, "drop_last": false,
 *      "lr": 0.05, "momentum": 0.9, "scale_lr": 0,
 *      "computes": "cpu openblas 0.3.21 Haswell",
 *      "parts": 0,                     files of each tensor; 0: one, of the tensor's name
 *      "parameters": 61706,            floats in weights.f32
 *      "model": "<64 hex>",            SHA-256 of all weights in order, whether in one file or
 *                                      in parts; of the last step it is the model hash
 *      "files": [{"name": "weights.f32", "bytes": 246824, "sha256": "<64 hex>"},
 *                {"name": "velocity.f32", "bytes": 246824, "sha256": "<64 hex>"}]}
 *
 * Where it is in parts each entry of files also has "tensor" (weights, or a moment's name) and "first", the
 * number of floats of that tensor before it. They are listed tensor by tensor, in order, and those of
 * a tensor follow upon one another without a gap, so that a reader who puts them together has the
 * file of a whole one, and whoever wants a range reads the parts that it lies in:
 *
 *     {"name": "weights.001-of-002.f32", "tensor": "weights", "first": 30853, "bytes": 123412, ...}
 *
 * A writer uses the lowest version that can say it. It is complete when the manifest is such an object, its step is that of the directory's name, and
 * every file it lists is there with that length and that SHA-256 (lower-case hex). Fields that are
 * not known are to be ignored; files that are not listed do not belong to it.
 *
 * A sharded one is written by several ranks; the manifest, by one of them, when all of the parts have
 * been synced. It is written under a name that begins with a dot, all files and then that directory are synced,
 * it is renamed to its final name, and DIR is synced. So a directory with the final name that is
 * not complete was damaged later, or its disk lost what had been synced. */
#pragma once

#include "scenarios/jobs/ranktrain/model/model.h"
#include "scenarios/jobs/ranktrain/optimizer.h"
#include "scenarios/jobs/ranktrain/training.h"

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

enum {
    MANIFEST_TENSORS = 3, /* weights and moments */
    MANIFEST_PARTS = 64,  /* as many as ranks */
    MANIFEST_FILES = MANIFEST_TENSORS * MANIFEST_PARTS,
    MANIFEST_BYTES_MAX = 64 * 1024,
    MANIFEST_VERSION = 3 /* the highest that is known */
};

#define MANIFEST_NAME    "manifest.json"
#define MANIFEST_WEIGHTS "weights.f32"

struct manifest {
    int64_t step, round, world_size, seed, width, parameters;
    char run_id[128], network[MODEL_NAME], optimizer[MODEL_NAME], model[65];
    struct training training; /* dataset "": version 1 or 2 */
    int parts;                /* of each tensor; 0: whole files */
    int n_files;
    struct manifest_file {
        char name[40], sha256[65];
        int tensor;           /* 0: weights, then the optimizer's moments */
        int64_t first, bytes; /* first: floats of the tensor before it */
    } files[MANIFEST_FILES];
};

/* The files of a checkpoint, by their names, without lengths and sums: whole ones, or so many parts
 * of each tensor. */
void manifest_name_files(struct manifest *m, const struct optimizer_kind *k, int parts);

/* "weights", "velocity" ... */
const char *manifest_tensor(const struct optimizer_kind *k, int tensor);

void manifest_write(const struct manifest *m, struct buf *out);

/* Returns 0, or -EBADMSG with a sentence that says what is wrong with the text. */
int manifest_read(const char *text, size_t n, struct manifest *ret, struct err *err);
