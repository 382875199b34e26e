#!/usr/bin/env bash
# sim --exhaustive: all orders of two agents, one of which may be killed while a worker may fail, and of
# three, one of which may be killed, end without a violation; what is typed wrongly is refused; a path is taken again.
# deadline: 300 s
set -u
rq=$BIN/rankquake
dir=$TMPDIR/exhaustive
mkdir "$dir"
failed=0

fail() {
    echo "$*"
    failed=1
}

refused() { # refused TEXT ARGUMENT...
    local text=$1
    shift
    "$rq" sim --exhaustive "$@" >"$dir/out" 2>"$dir/err"
    local code=$?
    [ $code = 64 ] || fail "sim --exhaustive $*: exit code $code, not 64"
    grep -qF -- "$text" "$dir/err" || fail "sim --exhaustive $*: does not say \"$text\" but: $(cat "$dir/err")"
}

refused '--agents 4: write a whole number from 1 to 3' --agents 4
refused '"meteor" is no kind of fault' --faults meteor
refused '--seed says nothing about --exhaustive' --seed 3
refused 'write a number from 0 to 9' --faults agent-kill=x
echo 'jump 0 0' >"$dir/path"
refused '"jump 0 0" is no choice' --path "$dir/path"
"$rq" sim --exhaustive --faults list | grep -q '^worker-fail ' || fail '--faults list does not print them'

"$rq" sim --exhaustive >"$dir/out" || fail "sim --exhaustive ends with $?: $(cat "$dir/out")"
grep -q '^no violation, [0-9]* states, [0-9]* transitions' "$dir/out" || fail "no verdict: $(cat "$dir/out")"
"$rq" sim --exhaustive --agents 3 --together 1 --faults agent-kill=1 >"$dir/out" ||
    fail "sim --exhaustive --agents 3 ends with $?: $(cat "$dir/out")"
grep -q '^no violation, ' "$dir/out" || fail "no verdict about three agents: $(cat "$dir/out")"
"$rq" sim --exhaustive --memory 1 --faults agent-stop=1 >"$dir/out"
[ $? = 2 ] || fail 'a search that ran out of memory is not inconclusive'

echo 'kill 0 0' >"$dir/path"
"$rq" sim --exhaustive --path "$dir/path" >"$dir/out" || fail "a path ends with $?"
grep -q 'nothing is violated on it' "$dir/out" || fail 'the path has no verdict'
exit $failed
