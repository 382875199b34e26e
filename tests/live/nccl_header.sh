#!/usr/bin/env bash
# What ranktrain says of NCCL in its own words (gpu/nccl_api.h), held against NVIDIA's header where
# there is one.
# deadline: 60 s
set -u
cd "$(dirname "$0")/../.." || exit 3
header=
for folder in /usr/include /usr/local/cuda*/include; do
    [ -e "$folder/nccl.h" ] && [ -e "$folder/cuda_runtime.h" ] && header=$folder
done
[ -n "$header" ] || { echo 'there is no nccl.h here'; exit 77; }
cat >"$TMPDIR/compare.c" <<'END'
#include <nccl.h>
#include <stddef.h>
#include <stdint.h>
#include "scenarios/jobs/ranktrain/gpu/nccl_api.h"
#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours)
SAME(NCCL_SUCCESS, ncclSuccess);
SAME(NCCL_CUDA_ERROR, ncclUnhandledCudaError);
SAME(NCCL_SYSTEM_ERROR, ncclSystemError);
SAME(NCCL_INTERNAL_ERROR, ncclInternalError);
SAME(NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(NCCL_REMOTE_ERROR, ncclRemoteError);
SAME(NCCL_IN_PROGRESS, ncclInProgress);
SAME(NCCL_INT64, ncclInt64);
SAME(NCCL_SUM, ncclSum);
SAME(NCCL_OLDEST, NCCL_VERSION(2, 14, 0));
SAME(sizeof(struct nccl_id), sizeof(ncclUniqueId));
SAME(offsetof(struct nccl_config, size), offsetof(ncclConfig_t, size));
SAME(offsetof(struct nccl_config, magic), offsetof(ncclConfig_t, magic));
SAME(offsetof(struct nccl_config, version), offsetof(ncclConfig_t, version));
SAME(offsetof(struct nccl_config, blocking), offsetof(ncclConfig_t, blocking));
static const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
int main(void) {
    return initial.magic != NCCL_CONFIG_MAGIC;
}
END
compile() { "${CC:-gcc}" -std=c11 -D_GNU_SOURCE -Wall -Werror -I. "$@"; }
compile -isystem "$header" -o "$TMPDIR/compare" "$TMPDIR/compare.c" && "$TMPDIR/compare"
