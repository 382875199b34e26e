#!/usr/bin/env bash
# try kills a job in the middle of a save that it does not announce: one that writes its only checkpoint in place fails, one
# that writes another file and renames it passes, and what no run could judge stands in the first line.
# Faults on its disk strike what it keeps, when it saves or somebody reads it: each run is conclusive.
# deadline: 600 s
set -u
rq=$(realpath "$BIN/rankquake")
dir=$TMPDIR/try-save
export XDG_CACHE_HOME=$dir/cache
mkdir "$dir" && cd "$dir" || exit 1
bad=0
fail() {
    echo "$*"
    cat said
    bad=1
}
said() { tr -s '\n ' '  ' <said; }

# The shell empties the file before it writes: that is where it is held. It saves a quarter of its time away from its
# middle, where a worker is killed first: on a busy machine that kill could come into a save by chance, and one that is
# in place is lost with it before the kill that waits for the save can come.
cat >job.sh <<'END'
epoch=0
if [ -e ckpt/latest ]; then
    read -r epoch <ckpt/latest || { echo "ckpt/latest is cut short" >&2; exit 1; }
fi
while [ $((epoch += 1)) -le 40 ]; do
    echo "epoch $epoch"
    sleep 0.1
    [ "$RANK" = 0 ] && [ $((epoch % 20)) = 10 ] || continue
    mkdir -p ckpt
    if [ "$SAVES" = in-place ]; then
        echo $epoch >ckpt/latest
    else
        echo $epoch >ckpt/new && mv ckpt/new ckpt/latest
    fi
done
END
try() { timeout 280 "$rq" try --out runs --set job.checkpoint.dir=ckpt -- "SAVES=$1" rankrun --nproc-per-node 2 bash job.sh >said 2>&1 </dev/null; }
try in-place
rc=$?
[ $rc = 4 ] && { tail -n 1 said; exit 77; }
[ $rc = 1 ] || fail "in place: exit $rc, not 1"
said | grep -q 'the job saves, so there is one more run' || fail 'in place: not said that it saves'
grep -q '^[^ ]* killed-in-save  *failed' said || fail 'in place: passed'
said | grep -q 'judged: lost_work, .*try --observe step=REGEX' || fail 'in place: the first line does not say what was not judged'
try aside
rc=$?
[ $rc = 0 ] || fail "renamed: exit $rc, not 0"
grep -q '^[^ ]* killed-in-save  *passed' said || fail 'renamed: did not pass'

# ---- on its disk ----
export PATH=${rq%/*}:$PATH RANKTRAIN_OPTIONS='--width=1 --batch-size=24'
timeout 280 "$rq" try --out runs --jobs 2 --also disk-error,disk-full,disk-readonly,disk-slow,file-truncate,file-swap -- \
    rankrun --nproc-per-node 1 ranktrain --steps=60 --compute-ms=40 --checkpoint-every=5 --samples=960 \
    '--checkpoint-dir={shared}/ckpt' >said 2>&1 </dev/null
rc=$?
[ $rc = 0 ] || fail "on its disk: exit $rc, not 0"
for name in disk-error disk-full disk-readonly disk-slow file-truncate file-swap; do
    grep -q "^+ $name  *passed" said || fail "on its disk: no passed $name"
done
for name in disk-error file-truncate; do
    grep -q "^+ $name  *passed  *started again" said || fail "on its disk: nobody met $name"
done
timeout 100 "$rq" try --out runs --also disk-error -- bash -c 'for i in 1 2 3 4 5 6; do echo $i; sleep 0.4; done' >said 2>&1 </dev/null
said | grep -q 'the job keeps nothing where a disk can be made to fail' || fail 'a job that keeps nothing on a disk is not told so'
exit $bad
