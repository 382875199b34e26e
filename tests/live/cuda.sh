#!/usr/bin/env bash
# ranktrain with the GPU library that nvcc built, on a machine without a GPU: what it is made of, and
# what it says when there is no driver, one that is too old, and no device. Where there was no nvcc
# there is no such library.
# deadline: 120 s
set -u
unset RANKTRAIN_OPTIONS # the kernels of GPUs compute one network of one width
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 3
BIN=$(realpath "${BIN:-build/bin}") OUT=$(realpath "${OUT:-build/release}")
library=$BIN/ranktrain_cuda.so
[ -e "$library" ] || { echo 'there is no ranktrain_cuda.so: it was built without nvcc'; exit 77; }
[ "${BUILD:-release}" = release ] || { echo "the library of $BUILD needs that sanitizer's library"; exit 77; }
unset RANKTRAIN_CUDA CUDA_VISIBLE_DEVICES
failed=0

say() {
    echo "$1"
    failed=1
}

# expect RC TEXT COMMAND...: ends so and says so, in one line.
expect() {
    local want=$1 text=$2 rc
    shift 2
    "$@" >"$TMPDIR/out" 2>"$TMPDIR/err" </dev/null
    rc=$?
    [ $rc = "$want" ] || { say "'$*' ended with $rc, not $want:"; cat "$TMPDIR/out" "$TMPDIR/err"; }
    grep -qF "$text" "$TMPDIR/err" || { say "'$*' does not say '$text' but:"; cat "$TMPDIR/err"; }
    [ "$(wc -l <"$TMPDIR/err")" = 1 ] || { say "'$*' says more than one line:"; cat "$TMPDIR/err"; }
}

driver() { # driver VERSION,INIT COMMAND...
    local plan=$1
    shift
    env LD_LIBRARY_PATH="$OUT/tests/fakes/driver" RANKTRAIN_FAKE_DRIVER="$plan" "$@"
}

# One symbol, libc only (and its loader, for thread-local variables), no CUDA in ranktrain itself.
[ "$(nm -D --defined-only "$library" | awk '{ print $3 }')" = ranktrain_gpu ] || say 'the library shows other symbols than ranktrain_gpu'
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libdl|librt|libpthread|ld-linux.*)\.so' )
[ -z "$needed" ] || say "the library needs more than libc: $needed"
readelf -d "$BIN/ranktrain" | grep -qi cuda && say 'ranktrain links CUDA'

train=("$BIN/ranktrain" --steps=2 --log-every=0)
old='the NVIDIA driver is too old: it can do CUDA 10.2 and this ranktrain was built with CUDA '
if ldconfig -p | grep -q 'libcuda\.so\.1'; then
    echo 'there is a driver here: a machine without one is not tried'
else
    expect 1 'there is no NVIDIA driver here (libcuda.so.1): install one' "${train[@]}" --device=cuda
    expect 0 'there is no NVIDIA driver here' "${train[@]}" --device=auto
fi
expect 1 "$old" driver 10020,100 "${train[@]}" --device=cuda
expect 0 "$old" driver 10020,100 "${train[@]}" --device=auto
with_auto=$(tail -n 1 "$TMPDIR/out")
expect 1 'the NVIDIA driver finds no GPU on this machine' driver 99000,100 "${train[@]}" --device=cuda
expect 0 'computing on the CPU' driver 99000,100 "${train[@]}" --device=auto
expect 1 'CUDA_VISIBLE_DEVICES=3 names no GPU of this machine' driver 99000,100 env CUDA_VISIBLE_DEVICES=3 "${train[@]}" --device=auto
expect 1 'looking for GPUs: cudaErrorSystemNotReady (802)' driver 99000,802 "${train[@]}" --device=auto

# The CPU is the default, and not a word about GPUs with it.
"${train[@]}" >"$TMPDIR/out" 2>"$TMPDIR/err" || say 'training on the CPU failed'
[ -s "$TMPDIR/err" ] && say "on the CPU it says: $(cat "$TMPDIR/err")"
[ "$(tail -n 1 "$TMPDIR/out")" = "$with_auto" ] || say 'the model of --device=auto without a GPU is not that of the CPU'
exit $failed
