/* compute: what computes gradients. One file per way ends in one const struct and has one line in
 * COMPUTES, in alphabetical order; the way of a GPU is in a shared object (gpu/backend.h). Whatever
 * it is, the same parameters and samples must give the same bits every time and at every world
 * size. */
#pragma once

#include "scenarios/jobs/ranktrain/model/model.h"
#include "scenarios/jobs/ranktrain/model/pass.h"

#include "base/err.h"

#include <stdbool.h>
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
    bool layered;              /* one layer at a time is all that is asked for (compute_layers) */
    int local_rank;            /* among those of its node: chooses the device */
    int wake_fd;               /* readable: asked to end; -1: none */
    int64_t limit_ns;          /* a device that takes longer for one call has failed */
};

/* Bytes that it holds. */
struct compute_memory {
    size_t parameters, gradients, activations;
};

/* Where a number was none, or too large: "the output of layer 3 (conv)", of which batch's shard. */
struct compute_wrong {
    int shard;
    char where[COMPUTE_LABEL];
};

struct compute_batch {
    int shard; /* for messages */
    const uint8_t *images[LAYER_BATCH_MAX];
    uint8_t labels[LAYER_BATCH_MAX];
};

/* A network one layer at a time, for who has not all numbers at hand: all batches pass a layer before
 * the next. begin; every layer forward in its order; then the classes, or the loss and every layer
 * backward in reverse. values are a layer's parameters and, behind them, its running statistics. All
 * return 0, -ERANGE and what is wrong, or an error as sum does. */
struct compute_layers {
    int (*begin)(void *c, const struct compute_batch *batches, int n, bool learning,
                 struct err *err);

    /* Learning: adds the batches' statistics to sums. */
    int (*forward)(void *c, int layer, const float *values, int64_t *sums,
                   struct compute_wrong *ret_wrong, struct err *err);

    /* Adds that of all batches. */
    int (*loss)(void *c, int64_t *sum, struct compute_wrong *ret_wrong, struct err *err);

    /* ret_sums: as many as the layer has parameters. */
    int (*backward)(void *c, int layer, const float *values, int64_t *ret_sums,
                    struct compute_wrong *ret_wrong, struct err *err);

    /* Of the first batch. */
    int (*classes)(void *c, uint8_t *ret_classes, struct err *err);
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

    const struct compute_layers *layers;

    /* What it holds now. */
    void (*memory)(void *c, struct compute_memory *ret);

    /* NULL, or all batches of a rank at once: ret_sums becomes the sums of their gradients (as long
     * as the model's values) and, behind them, of their losses, in fixed point (fixed_point.h).
     * watch (NULL: nobody does) hears of each layer whose sums of parameters are there, while others
     * are computed. Returns 0; -ERANGE and what is wrong; -ECANCELED: woken; or an error after which
     * nothing but close may follow. */
    int (*sum)(void *c, const float *values, const struct compute_batch *batches, int n,
               const struct pass_watch *watch, int64_t *ret_sums, struct compute_wrong *ret_wrong,
               struct err *err);

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
