#!/usr/bin/env bash
# S2: an elastic training script, launched with --rdzv_id, --rdzv_backend=etcd and --rdzv_endpoint. Gradients are averaged over the
# worker group; two workers stop in mid-epoch, three take up what they have saved in the directory that all share, each its part of
# what is left of the epoch, read ahead by loaders, and end with the weights of one that was never interrupted.
# deadline: 60 s
set -u
. tests/live/etcd.bash
PATH=$(cd "$BIN" && pwd):$PATH
cd "$TMPDIR" || exit 1
fail() {
    echo "$*"
    cat said*
    exit 1
}
# Below the ephemeral range; by this shell's pid, so that two runs do not meet.
port=$((20000 + $$ % 2500 * 4 + 2))
trap 'kill "$etcd" 2>/dev/null' EXIT
begin_etcd "http://127.0.0.1:$port" data --enable-v2 || exit 1
args=(--dataset=generated --samples=960 --batch-size=96 --log-every=0 --checkpoint-every=2 --checkpoint-dir=shared)
train() { # train ID NODES STEPS: one worker on each node
    local agents=() k
    for ((k = 0; k < $2; k++)); do
        timeout 300 rankrun --nnodes="$2" --nproc_per_node=1 --rdzv_id="$1" --rdzv_backend=etcd --rdzv_endpoint="127.0.0.1:$port" \
            ranktrain "${args[@]}" --steps="$3" >"said.$1.$k" 2>&1 &
        agents+=($!)
    done
    for k in "${agents[@]}"; do wait "$k" || fail "$1: a node: exit $?"; done
}
ranktrain "${args[@]}" --checkpoint-dir=alone --steps=14 >said 2>&1 || fail 'alone'
train lab 2 6
grep -q 'world 2, ' said.lab.* || fail 'two workers'
args+=(--loaders=2)
train lab-again 3 14
grep -q 'world 3, ' said.lab-again.* && grep -q '^resumed step 6 ' said.lab-again.* || fail 'three workers go on from step 6'
[ "$(cat said.lab-again.* | grep '^model ')" = "$(grep '^model ' said)" ] || fail 'another model than without an interruption'

# On disks of their own: who comes with an empty one gets the newest from the other.
own() { # own ID STEPS DIR...: a node for each
    local agents=() dir
    for dir in "${@:3}"; do
        timeout 300 rankrun --nnodes=2 --nproc_per_node=1 --rdzv_id="$1" --rdzv_backend=etcd --rdzv_endpoint="127.0.0.1:$port" \
            ranktrain "${args[@]}" --checkpoint-dir="$dir" --steps="$2" >"said.$1.$dir" 2>&1 &
        agents+=($!)
    done
    for dir in "${agents[@]}"; do wait "$dir" || fail "$1: a node: exit $?"; done
}
own disks 6 one two
rm -r one
own disks-again 14 three two
[ "$(cat said.disks-again.* | grep '^model ')" = "$(grep '^model ' said)" ] && grep -q '^resumed step 6 ' said.disks-again.* &&
    ls three | grep -qE '^step-0*14$' || fail "on disks of their own: $(ls two three)"
exit 0
