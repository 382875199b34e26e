#!/usr/bin/env bash
# S5: a parameter server and P = 8 workers, started with one process more than workers, on one machine and by a file of hosts,
# with the options of the manual; an evaluator of its own reads what the server saves; and a command on every host.
# deadline: 60 s
set -u
PATH=$(cd "$BIN" && pwd):$PATH
cd "$TMPDIR" || exit 1
bad=0
fail() {
    echo "$*"
    cat said
    bad=1
}
P=8
args=(--lr 0.01 --momentum 0.9 --network LeNet --dataset generated --samples 960 --batch-size 96 --max-steps 4 --eval-freq 2)
timeout 300 ranktrain evaluate --model-dir output/models --network LeNet --dataset generated --eval-batch-size 500 --eval-freq 2 \
    --max-steps 4 >evaluated 2>&1 &
evaluator=$!
timeout 300 rankrun --standalone --nproc_per_node=$((P + 1)) ranktrain --mode=ps "${args[@]}" --train-dir output/models >said 2>&1 ||
    fail "8 workers and a server: exit $?"
model=$(grep -oE '^model [0-9a-f]{64}$' said)
[ -n "$model" ] && grep -q 'world 9, ' said || fail '8 workers and a server'
[ "$(ls output/models | grep -cE '^step-0*[24]$')" = 2 ] || fail "saved: $(ls output/models)"
wait $evaluator || fail "the evaluator: exit $?: $(cat evaluated)"
[ "$(grep -cE '^step [24] loss [0-9.]+ accuracy [0-9.]+' evaluated)" = 2 ] || fail "the evaluator: $(cat evaluated)"

# All of the manual's options under their names; so many gradients are enough, where fewer than all are waited for.
timeout 300 rankrun --standalone --nproc_per_node=$((P + 1)) ranktrain --mode=ps "${args[@]}" --enable-gpu=false --epochs 1 \
    --num-aggregate $P --train-dir output/all >said 2>&1 || fail "the manual's options: exit $?"
grep -qxF "$model" said || fail "the manual's options: not $model"
timeout 300 rankrun --standalone --nproc_per_node=$((P + 1)) ranktrain --mode=ps "${args[@]}" --num-aggregate 5 >said 2>&1 ||
    fail "5 gradients of 8 are enough: exit $?"
grep -q '^model ' said || fail '5 gradients of 8 are enough'
# Its wishes: the sums of layers go round while others are computed, to the same model; late gradients are not waited for.
one=$(ranktrain "${args[@]}" 2>said | grep '^model ')
timeout 300 rankrun --standalone --nproc_per_node=4 ranktrain --overlap "${args[@]}" >said 2>&1 || fail "overlap: exit $?"
grep -qxF "${one:-none}" said || fail "overlap: not $one"
timeout 300 rankrun --standalone --nproc_per_node=5 ranktrain --mode=ps --ps-async --backup-workers=1 "${args[@]}" >said 2>&1 || fail "asynchronous: exit $?"
grep -q '^model ' said || fail 'asynchronous'
timeout 300 rankrun --standalone --nproc_per_node=3 ranktrain --mode=ps "${args[@]}" --network ResNet-18 --width 2 --max-steps 2 >said 2>&1 ||
    fail "another network: exit $?"
grep -q '^network resnet18 ' said || fail 'another network'

# Nine addresses of this machine; the first one is the server's.
for ((k = 1; k <= P + 1; k++)); do echo "127.0.0.$k"; done >hosts_address
timeout 300 rankrun --hostfile hosts_address ranktrain --mode=ps "${args[@]}" >said 2>&1 || fail "by a file of hosts: exit $?"
# All of them are this machine, so the store and rank 0 are where an agent was there first.
grep -qE "^\[127\.0\.0\.[1-9]\] $model$" said || fail "by a file of hosts: another model than $model"

timeout 300 rankrun --hostfile hosts_address --everywhere sh -c 'echo "${RANK-no rank} in $PWD"' >said 2>&1 ||
    fail "a command on all: exit $?"
[ "$(sort said)" = "$(sed "s,.*,[&] no rank in $PWD," hosts_address | sort)" ] || fail 'a command on all'
# One that fails somewhere is run on the others all the same.
timeout 300 rankrun -H 127.0.0.1,127.0.0.2 --everywhere sh -c 'mkdir once || exit 3' >said 2>&1
[ $? = 3 ] && [ "$(grep -c 'the command ended with code 3' said)" = 1 ] || fail 'a command that fails on one of two'
exit $bad
