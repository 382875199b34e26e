/* cuda: the compute on a GPU (compute.h), in ranktrain_cuda.so. */
#pragma once

#include "scenarios/jobs/ranktrain/compute.h"

struct network_shard;

extern const struct compute compute_cuda;

/* Copies what the last computation has left of its batch-th batch: for tests, layer by layer. */
int cuda_inspect(void *c, int batch, struct network_shard *ret, struct err *err);
