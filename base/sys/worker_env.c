#include "base/sys/worker_env.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {"RANK=",
                                    "LOCAL_RANK=",
                                    "GROUP_RANK=",
                                    "ROLE_RANK=",
                                    "ROLE_NAME=",
                                    "WORLD_SIZE=",
                                    "LOCAL_WORLD_SIZE=",
                                    "GROUP_WORLD_SIZE=",
                                    "ROLE_WORLD_SIZE=",
                                    "MASTER_ADDR=",
                                    "MASTER_PORT=",
                                    "RANKRUN_",
                                    "TORCHELASTIC_",
                                    "OMP_NUM_THREADS=",
                                    "CUDA_VISIBLE_DEVICES=",
                                    "OMPI_COMM_WORLD_",
                                    "PMI_",
                                    "PMIX_RANK=",
                                    "SLURM_PROCID=",
                                    "SLURM_NTASKS=",
                                    "SLURM_LOCALID=",
                                    "SLURM_JOB_ID=",
                                    "SLURM_RESTART_COUNT=",
                                    "NCCL_ASYNC_ERROR_HANDLING=",
                                    "TORCH_NCCL_ASYNC_ERROR_HANDLING="};

bool worker_env_is_told(const char *entry) {
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}
