/* gpu: what the shared object ranktrain_cuda.so offers to ranktrain.
 *
 * The object holds all that is of CUDA and NCCL, so that ranktrain itself links nothing of them and
 * is the same program everywhere; it needs libc only, carries its own CUDA runtime, and shows one
 * symbol. gpu/backend.h finds and opens it. */
#pragma once

#include "scenarios/jobs/ranktrain/compute.h"
#include "scenarios/jobs/ranktrain/net/collective.h"

/* Goes up whenever a struct that both sides use changes. */
enum { GPU_VERSION = 3 };

#define GPU_SYMBOL "ranktrain_gpu"

/* What the last computation has left of a layer's output and its gradient, of one batch. */
struct gpu_look {
    int layer; /* LAYER_IMAGES: the images as numbers; out alone */
    int batch;
    float *out, *d_out; /* the caller's, as long as the layer's output */
    int32_t *choice;    /* likewise; only of a layer that has some */
};

struct gpu_backend {
    int version;                         /* GPU_VERSION of the object; first, whatever follows */
    const struct compute *compute;       /* cuda */
    const struct collective *collective; /* nccl; NULL: this object has none */
    int (*inspect)(void *compute, struct gpu_look *look, struct err *err); /* for tests */
};

/* The one symbol. Needs no device and touches none. */
const struct gpu_backend *ranktrain_gpu(void) __attribute__((visibility("default")));
