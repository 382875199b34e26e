#!/usr/bin/env bash
# Whatever happens to the harness, nothing is left: SIGKILL at several moments of a run; Ctrl-C, which
# tears down in order and still writes the report.
# deadline: 240 s
# alone: it looks for whatever a killed harness may leave on the host
set -u
scenario=$TMPDIR/paced.yaml # it is not to end before the harness is killed
sed 's/\[ranktrain, /&--compute-ms=30, /' scenarios/membership/node-powered-off.yaml >"$scenario"
out=$TMPDIR/out
bad=0

. tests/live/traces.bash

# Starts a run in the background and waits until its live output shows $1.
start_until() { # PATTERN
    rm -rf "$out"
    mkfifo "$TMPDIR/said.$2"
    "$BIN/rankquake" run --isolation namespaces "$scenario" --out "$out" >"$TMPDIR/said.$2" 2>&1 &
    harness=$!
    exec 7<"$TMPDIR/said.$2"
    local line
    while IFS= read -r -t 180 -u 7 line; do
        echo "$line" >>"$TMPDIR/log.$2"
        [[ $line =~ $1 ]] && return 0
    done
    return 1
}

BIN=$(cd "$BIN" && pwd)
"$BIN/rankquake" run --isolation namespaces "$scenario" --out "$TMPDIR/first" >"$TMPDIR/first.log" 2>&1
rc=$?
[ $rc = 4 ] && { tail -n 1 "$TMPDIR/first.log"; exit 77; }
[ $rc = 0 ] || { cat "$TMPDIR/first.log"; exit 1; }
nothing_left || bad=1

n=0
for moment in 'round 1' 'node-poweroff' 'round 2'; do
    n=$((n + 1))
    if ! start_until "$moment" $n; then
        echo "the output never showed '$moment':"
        cat "$TMPDIR/log.$n"
        bad=1
    fi
    note_spaces || bad=1
    kill -KILL $harness
    exec 7<&-
    wait $harness 2>/dev/null
    nothing_left || { echo "after SIGKILL at '$moment'"; bad=1; }
done

# What the last one has left is named by the next, until it is cleaned.
echo 'job: {}' >"$TMPDIR/wrong.yaml"
next() { "$BIN/rankquake" run "$TMPDIR/wrong.yaml" --out "$out" 2>&1; }
next | grep -q "rankquake run: a harness that was killed has left $out/.*/scratch behind.*rankquake clean $out removes it" ||
    { echo 'the next run does not name what a killed harness has left:'; next; bad=1; }
[ "$(next | grep -c 'was killed')" = 1 ] || { echo 'it takes more than one line'; bad=1; }
"$BIN/rankquake" clean "$out" >"$TMPDIR/cleaned" 2>&1 || { cat "$TMPDIR/cleaned"; bad=1; }
next | grep 'was killed' && { echo 'it was cleaned'; bad=1; }

start_until 'round 1' int || bad=1
note_spaces || bad=1
kill -INT $harness
cat <&7 >>"$TMPDIR/log.int"
exec 7<&-
wait $harness
rc=$?
[ $rc = 130 ] || { echo "Ctrl-C: exit $rc, wanted 130"; cat "$TMPDIR/log.int"; bad=1; }
for file in history.jsonl verdict.json junit.xml; do
    ls "$out"/*/$file >/dev/null 2>&1 || { echo "Ctrl-C: $file was not written"; bad=1; }
done
nothing_left || { echo "after Ctrl-C"; bad=1; }
exit $bad
