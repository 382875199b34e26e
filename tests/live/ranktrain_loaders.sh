#!/usr/bin/env bash
# ranktrain --loaders: the same weights with and without, uneven epochs too; a loader that is killed is an error with its
# name, and none outlives its rank.
set -u
unset RANKTRAIN_OPTIONS
cd "$BIN" && PATH=$PWD:$PATH && cd "$TMPDIR" || exit 1
fail() { echo "$*"; cat said; exit 1; }
train() { ranktrain --samples=1000 --epochs=2 --log-every=0 "$@" 2>&1; }
loaders_of() { # the children of a process that are loaders
    local p
    for p in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
        grep -q rank-loader "/proc/$p/comm" 2>/dev/null && echo "$p"
    done
}

# 1000 images in steps of 96: 21 steps, of which the last begins a third epoch. One rank, and two that read by loaders.
train >said || fail 'without loaders'
grep -q '^world 1, round 0, 21 steps' said || fail 'not 21 steps'
timeout 100 rankrun --standalone --nproc_per_node=2 ranktrain --samples=1000 --epochs=2 --log-every=0 --loaders=2 >two 2>&1
cat two >>said
[ "$(grep '^model' said | sort | uniq -c | awk '{print $1}')" = 2 ] || fail 'another model'
train --drop-last --steps=1 >said && ranktrain --samples=1000 --epochs=2 --drop-last --log-every=0 --steps=0 >>said 2>&1
grep -q 'round 0, 20 steps' said || fail 'not 20 steps'

# One is killed while the rank waits for its pace: the next step that it should read is an error.
mkfifo lines
stdbuf -oL ranktrain --samples=960 --epochs=1000 --log-every=1 --compute-ms=30 --loaders=2 >lines 2>said &
rank=$!
exec 3<lines
while read -r line <&3; do [[ $line == 'step 3 '* ]] && break; done
victim=$(loaders_of $rank | head -n 1)
[ "$(loaders_of $rank | wc -l)" = 2 ] || fail "loaders: $(loaders_of $rank)"
kill -9 "$victim"
cat <&3 >/dev/null
wait $rank
[ $? = 1 ] || fail 'it goes on without a loader'
grep -q "loader . of 2, process $victim, was ended by signal 9 (Killed)" said || fail 'nobody is named'

# The rank is killed: its loaders end with it.
ranktrain --samples=960 --epochs=1000 --log-every=1 --compute-ms=30 --loaders=2 >lines 2>said &
rank=$!
exec 3<lines
while read -r line <&3; do [[ $line == 'step 3 '* ]] && break; done
left=$(loaders_of $rank)
kill -9 $rank
cat <&3 >/dev/null # ends when the last that could write there has ended
wait $rank 2>/dev/null
for p in $left; do
    [ ! -e "/proc/$p" ] || grep -q '^State:.Z' "/proc/$p/status" || fail "loader $p is left"
done
exit 0
