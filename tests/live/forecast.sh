#!/usr/bin/env bash
# A forecast from a run that was recorded just now, and what it says of bad input.
set -u
cd "$(dirname "$0")/../.." || exit 1
rq=$(realpath "${BIN:-build/bin}")/rankquake
dir=$TMPDIR/forecast
mkdir -p "$dir"
failed=0
fail() { echo "forecast: $*"; cat "$dir/said"; failed=1; }
expect() { # expect CODE WORDS ARGUMENTS...
    local code=$1 words=$2 rc
    shift 2
    "$rq" forecast "$@" >"$dir/said" 2>&1
    rc=$?
    [ $rc = "$code" ] || fail "forecast $* ends with $rc and not with $code"
    grep -qF -- "$words" "$dir/said" || fail "forecast $* does not say: $words"
}
"$rq" run scenarios/restart/worker-killed.yaml --out "$dir/runs" >"$dir/said" 2>&1
rc=$?
[ $rc -le 2 ] || { cat "$dir/said"; exit 1; }
run=$(echo "$dir"/runs/*/)
expect 0 'until it trained again (median of 1)' "$run" --nodes 1024 --mtbf 8h
grep -Eq '^  worker-kill ' "$dir/said" || fail 'the fault is not named'
grep -Eq '^  save  +[0-9]+ ms' "$dir/said" || fail 'no save was measured'
grep -qF '3.0 failures in a day' "$dir/said" || fail 'eight hours are other than three failures in a day'
# 1,024 nodes, a save of 2 minutes and a start of 10: the figures of the formula by hand.
expect 0 'best interval          42.5 min' --nodes 1024 --mtbf 8h --save 2m --restart 10m
grep -Eq 'formula +goodput 89\.27 %' "$dir/said" || fail 'another goodput'
expect 0 'llama3: 3.79 failures of 1,000 nodes in a day' --nodes 1024 --save 2m --restart 10m
expect 0 'https://arxiv.org/abs/2410.21680' --nodes 1024 --rates rsc1 --save 2m --restart 10m
expect 0 'that for failures that come at random' --nodes 1024 --mtbf 8h --save 2m --restart 10m --shape 0.7
expect 64 'on how many nodes?' "$run"
expect 64 'of which runs?' --nodes 8
expect 64 'write a duration' "$run" --nodes 8 --mtbf soon
expect 64 'did you mean llama3?' "$run" --nodes 8 --rates lama3
expect 64 'write a number from 0.2 to 5' "$run" --nodes 8 --shape 9
expect 64 "$dir/none" "$dir/none" --nodes 8
exit $failed
