/* failure: what a CUDA error means to whoever started the job. */
#pragma once

#include "base/err.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>

/* The context is of no use after it: CUDA answers it to every later call. */
bool failure_is_final(cudaError_t e);

/* A sentence for why no device could be found or counted, and -ENODEV, -EINVAL or -EIO. driver and
 * runtime are versions as CUDA numbers them; driver is 0 when there is none. */
int failure_to_find(cudaError_t e, int driver, int runtime, const char *visible, struct err *err);

/* A sentence for why a device that is there cannot be taken, and -EBUSY, -ENOMEM or -EIO. who is
 * "GPU 0 (NVIDIA H200)"; mode is the compute mode, -1 when not known. */
int failure_to_take(cudaError_t e, const char *who, int mode, struct err *err);
