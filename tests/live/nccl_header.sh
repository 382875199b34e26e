#!/usr/bin/env bash
# What ranktrain says of NCCL in its own words (gpu/nccl_api.h), and the fake NCCL in its own, held
# against NVIDIA's header where there is one.
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
# The fake's header takes the same names, so the compiler itself finds what differs.
cat >"$TMPDIR/fake.c" <<'END'
#include <stddef.h>
struct CUstream_st;
typedef struct CUstream_st *cudaStream_t;
#include "tests/fakes/nccl/nccl.h"
_Static_assert(ncclInt64 == THEIRS_INT64 && ncclSum == THEIRS_SUM && ncclRemoteError == THEIRS_REMOTE, "numbers");
int main(void) { return 0; }
END
compile() { "${CC:-gcc}" -std=c11 -D_GNU_SOURCE -Wall -Werror -I. "$@"; }
compile -isystem "$header" -o "$TMPDIR/compare" "$TMPDIR/compare.c" && "$TMPDIR/compare" || exit 1
numbers=$(printf '#include <nccl.h>\n#include <stdio.h>\nint main(void) { printf("-DTHEIRS_INT64=%%d -DTHEIRS_SUM=%%d -DTHEIRS_REMOTE=%%d", ncclInt64, ncclSum, ncclRemoteError); return 0; }\n' >"$TMPDIR/numbers.c" &&
    compile -isystem "$header" -o "$TMPDIR/numbers" "$TMPDIR/numbers.c" && "$TMPDIR/numbers") || exit 1
# shellcheck disable=SC2086
compile $numbers -fsyntax-only "$TMPDIR/fake.c"
