/* compute: what computes gradients. One file per way ends in one const struct and has one line in
 * COMPUTES, in alphabetical order; the way of a GPU is in a shared object (gpu/backend.h). Whatever
 * it is, the same parameters and samples must give the same bits every time and at every world
 * size. */
#pragma once

#include "scenarios/jobs/ranktrain/model/model.h"
#include "scenarios/jobs/ranktrain/model/pass.h"

#include "base/err.h"

#include <stdint.h>

enum { COMPUTE_LABEL = 128, COMPUTE_UUID = 48 };

/* The device that computes, as its driver names it. */
struct compute_device {
    char uuid[COMPUTE_UUID]; /* "GPU-" and the rest, as nvidia-smi shows it */
    int index;               /* among those that the process can see */
};

/* What a computation is told about the rank that it is for. */
struct compute_place {
    const struct model *model; /* stays the caller's */
    int batches;               /* at most so many at once */
    int local_rank;            /* among those of its node: chooses the device */
    int wake_fd;               /* readable: asked to end; -1: none */
    int64_t limit_ns;          /* a device that takes longer for one call has failed */
};

struct compute_batch {
    int shard; /* for messages */
    const uint8_t *images[LAYER_BATCH_MAX];
    uint8_t labels[LAYER_BATCH_MAX];
};

struct compute {
    const char *name, *summary;

    /* ret_label says what the bits depend on; it is printed beside the model's hash. -ENODEV: there
     * is nothing here that it could compute on, and the sentence says what is missing. */
    int (*open)(const struct compute_place *at, void **ret, char ret_label[COMPUTE_LABEL],
                struct err *err);

    /* As pass_gradient; NULL where there is sum. */
    double (*gradient)(void *c, const float *values, const uint8_t *const *images,
                       const uint8_t *labels, float *ret_gradient, const struct pass_watch *watch);

    /* NULL, or where the first number of the last gradient went wrong: "the output of layer 3
     * (conv)"; "": nowhere. */
    void (*blame)(const void *c, const float *gradient, char ret[COMPUTE_LABEL]);

    /* NULL where no layer is computed alone; else one more pass over the model, which becomes the
     * caller's. It shares nothing with others but the library. */
    struct pass *(*pass)(void *c);

    /* Bytes of activations that it holds. NULL: not known. */
    size_t (*bytes)(void *c);

    /* NULL, or all batches of a rank at once: ret_sums becomes the sums of their gradients (as long
     * as the model's values) and, behind them, of their losses, in fixed point (fixed_point.h). Returns 0; -ERANGE when a
     * number is beyond the limit, and *ret_shard is the first batch with one; -ECANCELED: woken; or
     * an error after which nothing but close may follow. */
    int (*sum)(void *c, const float *values, const struct compute_batch *batches, int n,
               int64_t *ret_sums, int *ret_shard, struct err *err);

    /* As pass_classify. Returns 0 or an error as sum does. */
    int (*classify)(void *c, const float *values, const uint8_t *const *images,
                    uint8_t *ret_classes, struct err *err);

    /* NULL: computes on no device of its own. */
    void (*device)(void *c, struct compute_device *ret);

    /* NULL is allowed. Returns 0, or -ETIMEDOUT when a device does not end: the process must leave
     * by _exit then. */
    int (*close)(void *c, struct err *err);
};

#define COMPUTES(X) X(cpu)

#define COMPUTE_DECLARE(name) extern const struct compute compute_##name;
COMPUTES(COMPUTE_DECLARE)
#undef COMPUTE_DECLARE
