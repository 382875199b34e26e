/* cuda: the compute on a GPU (compute.h), in ranktrain_cuda.so. */
#pragma once

#include "scenarios/jobs/ranktrain/compute.h"

struct gpu_look;

extern const struct compute compute_cuda;

/* As inspect of gpu.h. */
int cuda_inspect(void *c, struct gpu_look *q, struct err *err);
