#!/usr/bin/env bash
# ranktrain over NCCL, as far as that goes without a GPU: one GPU that is made up and that all nodes
# share, the library of kernels on a CUDA runtime that is made up, and a NCCL that is made up but sums
# for real, over TCP through the wire, each node a host of its own. In one run a
# worker is killed, the network of the sums is cut and a worker hangs (NCCL says nothing, and the
# deadline ends it), a node is cut off and comes back, one loses power, one joins, one is killed. The
# model is that of a control run, and every round has a communicator of its own.
# deadline: 480 s
set -u
unset RANKTRAIN_OPTIONS # the kernels of GPUs compute one network of one width
. tests/live/patience.bash
rq=$BIN/rankquake
dir=$TMPDIR/nccl
fakes=$(realpath "$OUT/tests/fakes")
mkdir -p "$dir/dev"
export RANKTRAIN_CUDA=$fakes/ranktrain_cuda.so NCCL_LIB=$fakes/libnccl.so.2
export XDG_CACHE_HOME=$TMPDIR/cache NO_COLOR=1
unset CUDA_VISIBLE_DEVICES RANKTRAIN_FAKE_CUDA RANKTRAIN_FAKE_NCCL NCCL_SOCKET_IFNAME NCCL_HOSTID
[ -e "$NCCL_LIB" ] || { echo "$NCCL_LIB is not built: make test-programs"; exit 1; }
# Few images, for the kernels run on the CPU: 600 to train on, 60 to test.
images() { # images COUNT-IN-OCTAL COUNT
    printf '\0\0\10\3\0\0%b\0\0\0\34\0\0\0\34' "$1"
    seq 1 100000 | tr -d '\n' | head -c $((784 * $2))
}
labels() {
    printf '\0\0\10\1\0\0%b' "$1"
    for ((i = 0; i < $2; i += 10)); do printf '\0\1\2\3\4\5\6\7\10\11'; done
}
mkdir -p "$dir/data"
images '\2\0130' 600 >"$dir/data/train-images-idx3-ubyte"
labels '\2\0130' 600 >"$dir/data/train-labels-idx1-ubyte"
images '\0\074' 60 >"$dir/data/t10k-images-idx3-ubyte"
labels '\0\074' 60 >"$dir/data/t10k-labels-idx1-ubyte"
late=5
[ "${BUILD:-release}" = release ] || late=12
bad=0
fail() {
    echo "$*"
    bad=1
}
# The driver lists whoever has the device's file open, as a job on a real one has.
export RANKQUAKE_NVML=$fakes/nvml/libnvidia-ml.so.1 RANKQUAKE_FAKE_NVML=$dir/nvml RANKQUAKE_DEV=$dir/dev
printf 'driver 570.86.15\ndevice GPU-fa4e0000-0000-0000-0000-000000000000 81920 500 0 Fake GPU\nholders 300\n' >"$dir/nvml"
printf '#!/bin/sh\nexec 9>>"$DEVICES/nvidia0"\nexec ranktrain "$@"\n' >"$dir/train"
chmod +x "$dir/train"
cat >"$dir/nccl.yaml" <<END
cluster: {nodes: 4, start: 3}
job:
  nnodes: "2:3"
  max_restarts: 5
  rdzv_conf: $watchful_map
  env: {DEVICES: "$dir/dev"}
  run: [$dir/train, --device=cuda, --dist-backend=nccl, --data-dir=$dir/data, --steps=80, --compute-ms=50,
        --checkpoint-every=2, --collective-timeout=$late, "--checkpoint-dir={shared}/ckpt"]
timeline:
  - {id: kill,  when: {step: 3},                           fault: worker-kill,   on: rank 1}
  - {id: split, when: {after: kill, round: 2, step: 6},    fault: net-partition, on: n2, with: {planes: data}}
  - {id: whole, when: {after: split, round: 3},            heal: split}
  - {id: hang,  when: {after: whole, round: 3, step: 9},   fault: worker-hang,   on: rank 2}
  - {id: cut,   when: {after: hang, round: 4, step: 12},   fault: net-partition, on: n2}
  - {id: fix,   when: {after: cut, round: 5, step: 15},    heal: cut}
  # How many steps go by until a node is back nobody knows; whoever saves is in a complete round.
  - {id: dark,  when: {after: fix, round: 6, event: checkpoint-commit},  fault: node-poweroff, on: node of rank 0}
  - {id: join,  when: {after: dark, round: 7, event: checkpoint-commit}, fault: node-start,    on: n3}
  - {id: dead,  when: {after: join, round: 8, event: checkpoint-commit}, fault: node-kill,     on: node of rank 0}
expect:
  outcome: succeeded
  world_sizes: [3, 3, 3, 3, 2, 3, 2, 3, 2]
  restarts: 3                    # kill, split, hang; what happens to nodes costs none
  model: same-as-undisturbed
END
"$rq" run "$dir/nccl.yaml" --out "$dir/runs" >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
[ $rc = 0 ] || { cat "$dir/said"; exit 1; }
grep -q 'communicator *a new one in each of 9 rounds' "$dir/said" || fail "communicators: $(cat "$dir/said")"
grep -q 'model .*as in the control run' "$dir/said" || fail "model: $(cat "$dir/said")"
grep -q '^  . one_device .* workers on one GPU each' "$dir/said" || fail "devices: $(cat "$dir/said")"
grep -q '^  . device_memory .*nothing left on 1 GPU' "$dir/said" || fail "memory: $(cat "$dir/said")"
run=$(echo "$dir"/runs/*/)
said() { # said TEXT WHAT
    grep -rqF -- "$1" "$run/logs" || fail "$2: no worker said '$1'"
}
# Whether one says that a peer was killed, before its agent ends it for that, is a race: test_nccl_worlds has no agent.
said "has not ended within $late s, and NCCL names nobody" 'the network of the sums was cut'

# One rank's NCCL is bound to a card that its node has not: refused with a sentence, nothing left.
sed -e '/^timeline:/,$d' -e 's/  env: {/&NCCL_SOCKET_IFNAME: =chaos9, /' -e 's/max_restarts: 5/max_restarts: 0/' \
    "$dir/nccl.yaml" >"$dir/card.yaml"
"$rq" run "$dir/card.yaml" --out "$dir/card" >"$dir/said" 2>&1
rc=$?
[ $rc != 0 ] || fail "a card that is not there: exit $rc: $(cat "$dir/said")"
grep -rqF 'NCCL_SOCKET_IFNAME==chaos9 names no network interface' "$dir/said" "$dir"/card/*/logs ||
    fail "no sentence about the card: $(cat "$dir/said")"
exit $bad
