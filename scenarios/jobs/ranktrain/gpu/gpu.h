/* gpu: what the shared object ranktrain_cuda.so offers to ranktrain.
 *
 * The object holds all that is of CUDA and NCCL, so that ranktrain itself links nothing of them and
 * is the same program everywhere; it needs libc only, carries its own CUDA runtime, and shows one
 * symbol. gpu/backend.h finds and opens it. */
#pragma once

#include "scenarios/jobs/ranktrain/compute.h"
#include "scenarios/jobs/ranktrain/net/collective.h"

/* Goes up whenever a struct that both sides use changes. */
enum { GPU_VERSION = 2 };

#define GPU_SYMBOL "ranktrain_gpu"

struct network_shard;

struct gpu_backend {
    int version;                         /* GPU_VERSION of the object; first, whatever follows */
    const struct compute *compute;       /* cuda */
    const struct collective *collective; /* nccl; NULL: this object has none */
    /* What the last computation has left of its batch-th batch (network.h): for tests. */
    int (*inspect)(void *compute, int batch, struct network_shard *ret, struct err *err);
};

/* The one symbol. Needs no device and touches none. */
const struct gpu_backend *ranktrain_gpu(void) __attribute__((visibility("default")));
