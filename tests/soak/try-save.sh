#!/usr/bin/env bash
# try kills a job in the middle of a save that it does not announce: one that writes its only checkpoint in place fails, one
# that writes another file and renames it passes, and what no run could judge stands in the first line.
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

# The shell empties the file before it writes: that is where it is held.
cat >job.sh <<'END'
epoch=0
if [ -e ckpt/latest ]; then
    read -r epoch <ckpt/latest || { echo "ckpt/latest is cut short" >&2; exit 1; }
fi
while [ $((epoch += 1)) -le 40 ]; do
    echo "epoch $epoch"
    sleep 0.1
    [ "$RANK" = 0 ] && [ $((epoch % 4)) = 0 ] || continue
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
said | grep -q 'not judged: .*try --observe step=REGEX' || fail 'in place: the first line does not say what was not judged'
try aside
rc=$?
[ $rc = 0 ] || fail "renamed: exit $rc, not 0"
grep -q '^[^ ]* killed-in-save  *passed' said || fail 'renamed: did not pass'
exit $bad
