#!/usr/bin/env bash
# What ranktrain is given and cannot use: each is one sentence that names it, a status that is not 0, and no loss of what
# was there. (Wrong and damaged data: ranktrain_prepare.sh and tests/scenarios/jobs/ranktrain/data.)
set -u
unset RANKTRAIN_OPTIONS
cd "$BIN" && PATH=$PWD:$PATH && cd "$TMPDIR" || exit 1
failed=0
train() { ranktrain --samples=960 --epochs=4 --log-every=0 "$@"; }
refuses() { # refuses STATUS PATTERN COMMAND...
    local status=$1 pattern=$2 rc
    shift 2
    "$@" >said 2>&1
    rc=$?
    [ $rc = "$status" ] && [ "$(grep -cE "^ranktrain: .*$pattern" said)" = 1 ] && return
    echo "$*: exit $rc, wanted $status and: $pattern"
    cat said
    failed=1
}
master='MASTER_ADDR=127.0.0.1 MASTER_PORT=29999'
refuses 64 'at most 12 workers, for the batch has 12 shards' env RANK=0 WORLD_SIZE=13 $master ranktrain
refuses 64 'WORLD_SIZE is set, RANK is not' env WORLD_SIZE=2 $master ranktrain
refuses 64 'RANK=2 is not below WORLD_SIZE=2' env RANK=2 WORLD_SIZE=2 $master ranktrain
refuses 64 'contradict each other' env RANK=0 WORLD_SIZE=1 LOCAL_RANK=3 LOCAL_WORLD_SIZE=2 ranktrain
refuses 64 'needs MASTER_ADDR and MASTER_PORT' env RANK=0 WORLD_SIZE=2 ranktrain
refuses 64 'did you mean --max-steps' ranktrain --max_stesp=3
refuses 1 'none has neither|/none has neither train-images' ranktrain --dataset=fashion-mnist --data-dir=/none

# Numbers that are none any more: the step, the shard and the layer.
refuses 1 'step [0-9]+: training has diverged: of shard 0, the [a-z]+ of layer [0-9]+ \(' train --lr=1000
refuses 1 'step [0-9]+: training has diverged: of shard 0, the [a-z]+ of layer [0-9]+ \(' \
    train --lr=1000 --network=resnet18 --width=2 --batch-size=24

# Where nothing can be written; and where it becomes full: the checkpoint before is still gone on from.
: >file
refuses 1 '--checkpoint-dir file/x: Not a directory' train --checkpoint-dir=file/x
mkdir full
# 600 kB: one checkpoint of two arrays of 247 kB, and a half.
if unshare --mount --map-root-user true 2>/dev/null; then
    cat >filled <<'END'
mount -t tmpfs -o size=600k tmpfs full || exit 77
ranktrain --samples=960 --epochs=4 --log-every=0 --checkpoint-dir=full --checkpoint-every=10
rc=$?
ranktrain --samples=960 --steps=10 --log-every=0 --checkpoint-dir=full | grep -q '^resumed step 10 from' || rc=9
exit $rc
END
    refuses 1 'step 20: checkpoint of step 20 in full: write .*: No space left on device' unshare --mount --map-root-user bash filled
fi
exit $failed
