#!/usr/bin/env bash
# try on a shell script, which only lives and dies: all five disasters strike at a time, one after the
# other, with the deadlines that a user has.
# deadline: 400 s
set -u
rq=$(realpath "$BIN/rankquake")
dir=$TMPDIR/try-shell
export XDG_CACHE_HOME=$dir/cache
mkdir "$dir" && cd "$dir" || exit 1
bad=0
fail() {
    echo "$*"
    bad=1
}
said() { tr -s '\n ' '  ' <said; }

cat >job.sh <<'END'
for i in 1 2 3 4 5 6 7 8 9 10; do echo "epoch $i of rank $RANK"; sleep 0.8; done
END
timeout 300 "$rq" try --seed 3 --out runs -- rankrun --nproc-per-node 2 bash job.sh >said 2>&1 </dev/null
rc=$?
[ $rc = 4 ] && { tail -n 1 said; exit 77; }
[ $rc = 0 ] || fail "exit $rc"
said | grep -q 'each fault strikes at [0-9.]* s of' || fail 'not hit at a time'
said | grep -q 'node-joins passed grew to 4 workers' || fail 'the node did not join'
said | grep -q 'not judged' || fail 'not said what was not judged'
said | grep -q 'With step events' || fail 'not said what would fix that'
[ $bad = 0 ] || cat said
exit $bad
