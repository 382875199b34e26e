#!/usr/bin/env bash
# A run can be entered while it goes on and not afterwards; clean never touches one that goes on, takes
# away what a killed harness has left, and says so; what --keep has kept stays until it is asked for.
# alone: beside a test that kills its harness there would be more to clean
set -u
dir=$TMPDIR/clean
mkdir "$dir"
. tests/live/says.bash

begun() { # the workers run, and it is not the control run
    local seen=
    while IFS= read -r -t 180 -u 7 line && [[ $seen$line != *'waits, seed 1'*'round 1: 1 worker'* ]]; do seen+=$line; done
}

cat >"$dir/s.yaml" <<'END'
scenario: waits
cluster: {nodes: 1, store: none}
job: {run: [sh, -c, 'case {out} in */control) ;; *) exec sleep "$WAIT" ;; esac'], env: {WAIT: "0"}}
END
"$BIN/rankquake" run --isolation namespaces "$dir/s.yaml" --out "$dir/first" >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
[ $rc = 0 ] || { cat "$dir/said"; exit 1; }
says 0 '^nothing to clean$' 'after a run' "$BIN/rankquake" clean "$dir/first"
[ -z "$(find "$dir/first" -name presence.json)" ] || fail 'a run that has ended still says that it goes on'

# One that goes on.
mkfifo "$dir/live"
"$BIN/rankquake" run --isolation namespaces "$dir/s.yaml" --set 'job.env.WAIT="1000"' --out "$dir/out" >"$dir/live" 2>&1 &
harness=$!
exec 7<"$dir/live"
begun
run=$(echo "$dir"/out/*)
says 0 '^n0$' 'enter' "$BIN/rankquake" enter "$run" n0 -- hostname
says 3 '^x$' "the command's code" "$BIN/rankquake" enter "$run" n0 -- sh -c 'echo x; exit 3'
says 0 'eth0:' "the node's network" "$BIN/rankquake" enter "$run" n0 -- cat /proc/net/dev
says 127 'cannot execute /no/such-program in n0' 'no such program' "$BIN/rankquake" enter "$run" n0 -- /no/such-program
says 64 'no node n7 is on in this run; there are n0' 'no such node' "$BIN/rankquake" enter "$run" n7 -- true
says 0 "^left alone: $run, its harness $harness is at work$" 'clean beside a run' "$BIN/rankquake" clean "$dir/out"
grep -q '^nothing to clean$' "$dir/said" || fail 'clean found something to do beside a run'
[ -d "$run/scratch" ] || fail 'clean took the scratch of a run away'

# Killed without a word.
kill -KILL $harness
cat <&7 >/dev/null
exec 7<&-
wait $harness 2>/dev/null
says 0 'does not run any more' 'halt after the end' "$BIN/rankquake" halt "$run"
says 64 'does not run any more' 'enter after the end' "$BIN/rankquake" enter "$run" n0 -- true
says 0 "^would remove $run/scratch, left by harness $harness, which is dead$" 'clean --dry-run' \
    "$BIN/rankquake" clean "$dir/out" --dry-run
[ -d "$run/scratch" ] || fail 'clean --dry-run removed something'
says 0 "^removed $run/scratch, left by harness $harness" 'clean' "$BIN/rankquake" clean "$dir/out"
[ ! -e "$run/scratch" ] || fail 'clean left the scratch'
[ -s "$run/history.jsonl" ] || fail 'clean took the history'
says 0 '^nothing to clean$' 'clean again' "$BIN/rankquake" clean "$dir/out"

# Ended from elsewhere: in order, with a report.
"$BIN/rankquake" run --isolation namespaces "$dir/s.yaml" --set 'job.env.WAIT="1000"' --out "$dir/halted" >"$dir/live" 2>&1 &
harness=$!
exec 7<"$dir/live"
begun
run=$(echo "$dir"/halted/*)
says 0 "^ended $run" 'halt' "$BIN/rankquake" halt "$run"
cat <&7 >/dev/null
exec 7<&-
wait $harness
rc=$?
[ $rc = 130 ] || fail "halted: exit $rc, wanted 130"
[ -n "$(find "$run" -name verdict.json)" ] || fail 'halted: no report was written'
says 0 '^nothing to clean$' 'clean after halt' "$BIN/rankquake" clean "$dir/halted"

# A process that outlived its harness is ended. One that only has its number is not, nor one that the
# note names and that does not carry the run's mark, nor one whose mark is of a harness that lives.
space=$(readlink /proc/self/ns/pid)
mark() { # mark DIGIT HARNESS TICKS
    echo "RANKQUAKE_MARK=$(printf "$1%.0s" {1..32}).${space//[!0-9]/}.$2.$3"
}
ours=$(mark a 4194303 1) living=$(mark b $$ "$(note x $$ | sed 's/.*start_ticks":\([0-9]*\).*/\1/')")
env "$ours" sleep 1000 &
stray=$!
env "$ours" TMPDIR="$dir/stray/one/scratch/n0.tmp" sleep 1000 &
unnamed=$!
sleep 1000 &
other=$!
env "$living" sleep 1000 &
alive=$!
mkdir -p "$dir/stray/one/scratch" "$dir/stray/two/scratch" "$dir/stray/three/scratch"
boot=$(cat /proc/sys/kernel/random/boot_id)
tell() { # tell MARK HARNESS NODE
    echo "{\"v\":1,\"boot\":\"$boot\",\"space\":\"$space\",\"mark\":\"$1\",\"keep\":false,\"harness\":$2,\"nodes\":[$3]}"
}
dead='{"name":"harness","pid":4194303,"start_ticks":1}'
tell "$ours" "$dead" "$(note n0 $stray)" >"$dir/stray/one/presence.json"
tell "$(mark c 4194303 1)" "$dead" "{\"name\":\"n0\",\"pid\":$other,\"start_ticks\":1},$(note n1 $other)" \
    >"$dir/stray/two/presence.json"
tell "$living" "$dead" "$(note n0 $alive)" >"$dir/stray/three/presence.json"
says 0 "^ended process $stray, n0$" 'a stray' "$BIN/rankquake" clean "$dir/stray"
grep -q "^ended process $unnamed, left by a node$" "$dir/said" || fail 'clean missed a process that carries the mark'
kill -0 $other 2>/dev/null || fail 'clean ended a process that a note names'
kill -0 $alive 2>/dev/null || fail 'clean ended a process whose harness lives'
kill $stray $unnamed $other $alive 2>/dev/null
wait 2>/dev/null
for run in one two three; do
    [ ! -e "$dir/stray/$run/scratch" ] || fail "a scratch is left in $run"
done
# Not ours to know.
mkdir -p "$dir/far/one/scratch"
tell "$ours" "$dead" '' | sed 's/"space":"[^"]*"/"space":"pid:[1]"/' >"$dir/far/one/presence.json"
says 0 '^left alone: .* another container$' 'another container' "$BIN/rankquake" clean "$dir/far"
echo '{' >"$dir/far/one/presence.json"
says 5 'presence.json' 'a damaged note' "$BIN/rankquake" clean "$dir/far"

"$BIN/rankquake" run --isolation namespaces "$dir/s.yaml" --out "$dir/kept" --keep >"$dir/said" 2>&1 || fail 'run --keep failed'
says 0 '^left alone: .*/scratch, kept by --keep; clean --kept' 'kept' "$BIN/rankquake" clean "$dir/kept"
says 0 '^removed .*/scratch, kept by --keep$' 'clean --kept' "$BIN/rankquake" clean "$dir/kept" --kept
says 64 'there is no folder .*/nowhere' 'no such folder' "$BIN/rankquake" clean "$dir/nowhere"
says 64 'there is no run ' 'enter nowhere' "$BIN/rankquake" enter "$dir/nowhere" n0
exit $bad
