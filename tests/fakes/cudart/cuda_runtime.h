/* What a kernel finds, for a C compiler: which thread it is. Stands in for NVIDIA's header. */
#pragma once

#include "cuda_runtime_api.h"

#define __global__
#define __device__

#define FAKE_THREAD extern __thread __attribute__((tls_model("initial-exec"))) struct dim3

FAKE_THREAD threadIdx;
FAKE_THREAD blockIdx;
FAKE_THREAD blockDim;
FAKE_THREAD gridDim;
