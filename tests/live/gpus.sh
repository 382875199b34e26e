#!/usr/bin/env bash
# Nodes with GPUs, as far as that goes without one: a driver's library that is made up deals out two
# devices, and lists on each whoever has its file open. The job is ranktrain on the processor, behind
# a shell that opens the file of its rank's device.
# deadline: 150 s
set -u
unset RANKTRAIN_OPTIONS # the kernels of GPUs compute one network of one width
. tests/live/patience.bash
rq=$BIN/rankquake
dir=$TMPDIR/gpus
mkdir -p "$dir/dev"
RANKQUAKE_NVML=$(realpath "$OUT/tests/fakes/nvml/libnvidia-ml.so.1")
export RANKQUAKE_NVML RANKQUAKE_FAKE_NVML=$dir/nvml RANKQUAKE_DEV=$dir/dev XDG_CACHE_HOME=$TMPDIR/cache NO_COLOR=1
unset CUDA_VISIBLE_DEVICES
[ -e "$RANKQUAKE_NVML" ] || { echo "$RANKQUAKE_NVML is not built: make test-programs"; exit 1; }
bad=0
fail() {
    echo "$*"
    bad=1
}
cat >"$RANKQUAKE_FAKE_NVML" <<END
driver 570.86.15
device GPU-aaaa 81920 500 0 NVIDIA H200
device GPU-bbbb 81920 500 0 NVIDIA H200
holders 300
END

# A node's /sys shows its own cards, where a sysfs may be mounted at all.
own=
if unshare --user --map-root-user --net --mount mount -t sysfs sysfs /sys 2>/dev/null; then own=yes; fi
# Its device by CUDA_VISIBLE_DEVICES and LOCAL_RANK, as a job takes it.
cat >"$dir/train" <<END
#!/bin/bash
IFS=, read -r -a mine <<<"\$CUDA_VISIBLE_DEVICES"
case \${mine[LOCAL_RANK]} in GPU-aaaa) exec 9>>"\$DEVICES/nvidia0" ;; GPU-bbbb) exec 9>>"\$DEVICES/nvidia1" ;; esac
[ -z "$own" ] || [ "\$(echo /sys/class/net/*)" = '/sys/class/net/eth0 /sys/class/net/lo' ] || exit 9
[ -z "\${WRONG-}" ] || exec 8>>"\$DEVICES/nvidia0"
exec "$(realpath "$BIN/ranktrain")" "\$@"
END
chmod +x "$dir/train"
cat >"$dir/gpu.yaml" <<END
cluster: {nodes: 2}
job:
  nnodes: 2
  rdzv_conf: $patient_map
  env: {DEVICES: "$dir/dev"} # a path below /tmp: seen in the nodes because it is named
  run: [$dir/train, --steps=40, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt"]
timeline:
  - {id: kill, when: {step: 15}, fault: worker-kill, on: rank 1}
END

run() { # run RC [OPTION...]: leaves the run directory in $run
    local want=$1 rc
    shift
    rm -rf "$dir/runs"
    "$rq" run "$dir/gpu.yaml" --out "$dir/runs" "$@" >"$dir/said" 2>&1
    rc=$?
    run=$(ls -d "$dir"/runs/*/ 2>/dev/null)
    [ $rc = "$want" ] || fail "run $*: exit $rc, not $want: $(cat "$dir/said")"
}
finding() { # finding MARK CHECK TEXT
    grep -q "^  $1 $2  *.*$3" "$dir/said" || fail "no \"$1 $2 $3\": $(cat "$dir/said")"
}

"$rq" plan "$dir/gpu.yaml" >"$dir/said" 2>&1
grep -q 'n1 .*an agent, 1 worker, GPU 1$' "$dir/said" || fail "plan: $(cat "$dir/said")"

grep -A3 '^judged' "$dir/said" | grep -q 'device_memory' || fail "plan does not judge devices: $(cat "$dir/said")"
RANKQUAKE_NVML=/nowhere "$rq" plan "$dir/gpu.yaml" >"$dir/said" 2>&1
grep -q '^  device_memory  *no node is given a GPU$' "$dir/said" || fail "plan without GPUs: $(cat "$dir/said")"

run 0
finding . device_memory 'nothing left on 2 GPUs; 4 ended workers were seen to be gone within'
finding . one_device '4 workers on one GPU each'
finding - communicator 'no worker named a communicator'
grep -q '"kind":"worker-start","node":"n1".*"CUDA_VISIBLE_DEVICES":"GPU-bbbb"' "$run/history.jsonl" || fail 'n1 was not given GPU-bbbb'

# A rank that opens its neighbour's device as well: both nodes' ranks are listed on GPU-aaaa.
sed -i 's/env: {/env: {WRONG: 1, /' "$dir/gpu.yaml"
run 3 # undisturbed, too
grep -q 'the job failed in the control run.*: rank . on n1 was on GPU-aaaa and on GPU-bbbb' "$dir/said" || fail "two: $(cat "$dir/said")"

# More than there are.
run 4 --set cluster.gpus_per_node=3
grep -q 'every node wants 3, this host has 2 (NVIDIA H200)' "$dir/said" || fail "three: $(cat "$dir/said")"
exit $bad
