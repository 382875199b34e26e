/* compute: what computes gradients. One file per way ends in one const struct and has one line in
 * COMPUTES, in alphabetical order. Whatever it is, the same parameters and samples must give the
 * same bits every time and at every world size. */
#pragma once

#include "scenarios/jobs/ranktrain/lenet.h"

#include "agent/base/err.h"

#include <stdint.h>

enum { COMPUTE_LABEL = 128, COMPUTE_UUID = 48 };

/* The device that computes, as its driver names it. */
struct compute_device {
    char uuid[COMPUTE_UUID]; /* "GPU-" and the rest, as nvidia-smi shows it */
    int index;               /* among those that the process can see */
};

struct compute {
    const char *name, *summary;
    /* ret_label says what the bits depend on; it is printed beside the model's hash. */
    int (*open)(void **ret, char ret_label[COMPUTE_LABEL], struct err *err);
    /* As lenet_gradient and lenet_classify. */
    double (*gradient)(void *c, const float *parameters, const uint8_t *const images[LENET_BATCH],
                       const uint8_t labels[LENET_BATCH], float ret_gradient[LENET_PARAMETERS]);
    void (*classify)(void *c, const float *parameters, const uint8_t *const images[LENET_BATCH],
                     uint8_t ret_classes[LENET_BATCH]);
    /* NULL: computes on no device of its own. */
    void (*device)(void *c, struct compute_device *ret);
    void (*close)(void *c); /* NULL is allowed */
};

#define COMPUTES(X) X(cpu)

#define COMPUTE_DECLARE(name) extern const struct compute compute_##name;
COMPUTES(COMPUTE_DECLARE)
#undef COMPUTE_DECLARE
