#include "scenarios/jobs/ranktrain/gpu/gpu.h"
#include "scenarios/jobs/ranktrain/gpu/cuda.h"
#include "scenarios/jobs/ranktrain/gpu/nccl.h"

const struct gpu_backend *ranktrain_gpu(void) {
    static const struct gpu_backend backend = {
        .version = GPU_VERSION,
        .compute = &compute_cuda,
        .collective = &collective_nccl,
        .inspect = cuda_inspect,
    };
    return &backend;
}
