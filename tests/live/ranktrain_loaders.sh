#!/usr/bin/env bash
# ranktrain --loaders: the same weights with and without, uneven epochs too; a loader that is killed is an error with its
# name, and none outlives its rank.
set -u
unset RANKTRAIN_OPTIONS
pictures=$PWD/$OUT/tests/scenarios/jobs/ranktrain/data/spawn_pictures
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
timeout 300 rankrun --standalone --nproc_per_node=2 ranktrain --samples=1000 --epochs=2 --log-every=0 --loaders=2 >two 2>&1
cat two >>said
[ "$(grep '^model' said | sort | uniq -c | awk '{print $1}')" = 2 ] || fail 'another model'
train --drop-last --steps=1 >said && ranktrain --samples=1000 --epochs=2 --drop-last --log-every=0 --steps=0 >>said 2>&1
grep -q 'round 0, 20 steps' said || fail 'not 20 steps'

# Pictures in class folders are decoded by the loaders and packed nowhere: the same model. One that is damaged is named.
export XDG_CACHE_HOME=$TMPDIR/own
"$pictures" pictures 3 40
train=(ranktrain --network=resnet18 --width=2 --batch-size=24 --steps=7 --log-every=0)
"${train[@]}" --loaders=2 pictures >said 2>&1 || fail 'pictures by loaders'
grep -q '120 images of 3x32x32, decoded by 2 loaders' said || fail 'not decoded by loaders'
[ "$(find own -name '*.images' | grep -c train)" = 0 ] || fail 'they are packed'
"${train[@]}" pictures >>said 2>&1 || fail 'pictures packed'
[ "$(grep '^model' said | sort | uniq -c | awk '{print $1}')" = 2 ] || fail 'another model of pictures'
truncate -s 100 pictures/train/class1/0007.png
"${train[@]}" --loaders=2 pictures >said 2>&1 && fail 'a damaged picture is trained on'
grep -q 'pictures/train/class1/0007.png: is no whole PNG' said || fail 'which picture'
rm pictures/train/class1/000[67].* pictures/train/class0/0009.png

# Each rank has a part of the data: who has another than it is due is told so.
for k in 0 1; do ranktrain prepare --dataset=folder --from=pictures --split=$k/2 --to=part$k >said 2>&1 || fail "part $k"; done
parts() { # parts WHOSE: by hand, 117 images in parts of 59 and 58, two epochs
    timeout 300 rankrun --standalone --nproc_per_node=2 sh -c "exec ranktrain --mode=manual --network=resnet18 --width=2 --batch-size=24 \
        --epochs=2 --log-every=0 --data-dir=part\$(($1))" >said 2>&1
}
parts RANK || fail 'parts'
grep -q 'world 2, round 0, 10 steps\|world 2, round 1, 10 steps' said || fail 'not 10 steps of 12 and 12'
parts 1-RANK && fail 'the other part is taken'
grep -qE 'part(1.train.images is part 1 of 2, and rank 0 of 2 is due part 0|0.train.images is part 0 of 2, and rank 1 of 2 is due part 1): prepare it' said || fail 'which part is due'

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
