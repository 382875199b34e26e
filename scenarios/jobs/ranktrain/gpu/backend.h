/* backend: finds ranktrain_cuda.so and opens it. Part of ranktrain itself, which links no CUDA. */
#pragma once

#include "scenarios/jobs/ranktrain/gpu/gpu.h"

#include "base/err.h"

#define BACKEND_VARIABLE "RANKTRAIN_CUDA"
#define BACKEND_FILE     "ranktrain_cuda.so"

/* Opens the file that $RANKTRAIN_CUDA names, else the one beside the executable, and leaves it open
 * for the life of the process: a driver's threads may run in it. Returns 0; -ENOENT when there is
 * no such file and none was named; -ENOEXEC when a file cannot be used or the named one is not
 * there. The sentence says what to do. */
int backend_open(const struct gpu_backend **ret, struct err *err);
