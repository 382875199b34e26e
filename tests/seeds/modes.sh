#!/usr/bin/env bash
# S3: one program, the ways of a primer. Data parallel in one process, a batch of 16 over 4 devices; a process for each device;
# the optimizer's state sharded by one flag, and what each rank holds; all of the model sharded, where one device's memory
# cannot hold it; a checkpoint for each epoch; a program that starts its own two ranks, at localhost:29500. All end with the same weights.
set -u
if [ "${1-}" != inside ]; then # a network of its own: the port is the manual's
    unshare -Urn true 2>/dev/null || { echo 'no network namespace of its own here: port 29500 may be somebody else'"'"'s'; exit 77; }
    BIN=$(cd "$BIN" && pwd) exec unshare -Urn bash "$0" inside
fi
PATH=$BIN:$PATH
cd "$TMPDIR" || exit 1
ip link set lo up 2>/dev/null
bad=0
model='' args=(--dataset=generated --samples=192 --epochs=1 --log-every=0 --batch-size=16 --shards=4)
fail() {
    echo "$*"
    cat said
    bad=1
}
same() { # same WHAT COMMAND...: it ends with the weights of the first
    local got
    timeout 300 "${@:2}" >said 2>&1 || fail "$1: exit $?"
    got=$(grep -oE '^model [0-9a-f]{64}$' said)
    [ -n "$got" ] && [ "$got" = "${model:=$got}" ] || fail "$1: '$got', not '$model'"
}
held() { sed -nE "s/.*rank 0 holds .*$1 ([0-9]+).*/\1/p" said; }
same 'one process' ranktrain "${args[@]}"
whole=$(held 'optimizer state')
same '3.1 a batch of 16 over 4 devices in one process' ranktrain --mode=dp --devices=4 "${args[@]}"
same '3.2 a process for each device' rankrun --standalone --nproc_per_node=4 ranktrain "${args[@]}"
same '3.3 the optimizer state sharded' rankrun --standalone --nproc_per_node=4 ranktrain --use-zero "${args[@]}"
part=$(held 'optimizer state')
[ "${part:-0}" -gt 0 ] && [ $((part * 4)) -lt $((whole + 64)) ] || fail "3.3 a rank holds $part of $whole bytes"
one=$model
same '3.5 a checkpoint for each epoch' ranktrain "${args[@]}" --checkpoint-every=1ep --checkpoint-dir=saved
ls saved | grep -qE '^step-0*12$' || fail "3.5 saved: $(ls saved)"
args+=(--network=resnet18 --width=8 --optimizer=adam --samples=48) model=''
same '3.4 all held by each' rankrun --standalone --nproc_per_node=4 ranktrain "${args[@]}"
same '3.4 all of it sharded, where it does not fit else' rankrun --standalone --nproc_per_node=4 ranktrain --mode=fsdp \
    --device-memory=16000000 "${args[@]}"
timeout 300 rankrun --standalone --nproc_per_node=4 ranktrain --device-memory=16000000 "${args[@]}" >said 2>&1 &&
    fail '3.4 it fits without being sharded'
grep -q "the device's memory is full" said || fail '3.4 why it does not fit'
# The manual's own numbers: a batch of 64x1x28x28 for one step, SGD with 0.001 or Adam with 0.01, whose state is twice the model.
for numbers in '--optimizer=sgd --lr=0.001 --momentum=0' '--optimizer=adam --lr=0.01'; do
    # shellcheck disable=SC2206
    args=(--dataset=generated --samples=64 --epochs=1 --log-every=0 --batch-size=64 --shards=4 $numbers) model=''
    same "3.3 $numbers" ranktrain "${args[@]}"
    grep -q '64 images of 1x28x28' said || fail "3.3 $numbers: other images"
    whole=$(held 'optimizer state') weights=$(held 'parameters')
    same "3.3 $numbers, sharded" rankrun --standalone --nproc_per_node=2 ranktrain --use_zero=true "${args[@]}"
    part=$(held 'optimizer state')
done
[ "$whole" = $((weights * 2)) ] && [ $((part * 2)) -lt $((whole + 64)) ] || fail "3.3 Adam's state: $whole bytes for $weights, $part of them"
args=(--dataset=generated --samples=192 --epochs=1 --log-every=0 --batch-size=16 --shards=4) model=$one
same '3.7 two ranks at localhost:29500' ranktrain --spawn 2 "${args[@]}"
grep -q 'world 2, ' said || fail '3.7 two ranks'
exit $bad
