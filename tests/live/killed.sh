#!/usr/bin/env bash
# Whatever happens to the harness, nothing is left: SIGKILL at several moments of a run; Ctrl-C, which
# tears down in order and still writes the report.
# deadline: 240 s
set -u
if [ ! -x "$BIN/rankquake" ]; then
    echo "$BIN/rankquake is not there yet"
    exit 77
fi
scenario=scenarios/membership/node-powered-off.yaml
out=$TMPDIR/out
bad=0

# Every process of a run carries the run directory or our programs' folder in its command line or is a
# descendant in the run's session; a mark in the environment finds them all.
export RANKQUAKE_TEST_MARK=killed-$$-$RANDOM
marked() {
    grep -lsa "RANKQUAKE_TEST_MARK=$RANKQUAKE_TEST_MARK" /proc/[0-9]*/environ 2>/dev/null |
        cut -d/ -f3 | grep -vxE "$$|$BASHPID" | while read -r pid; do
        exe=$(readlink "/proc/$pid/exe") || continue
        case $exe in "$BIN"/* | */ranktrain | */rankprobe | */rankrun | */rankquake) echo "$pid $exe" ;; esac
    done
}
# The namespaces that processes of the run live in, and whether any process still lives in one of them.
spaces=()
note_spaces() {
    local own pid exe
    own=$(readlink /proc/self/ns/net)
    mapfile -t spaces < <(marked | while read -r pid exe; do readlink "/proc/$pid/ns/net"; done |
        grep -vxF "$own" | sort -u)
    [ ${#spaces[@]} -gt 0 ] || { echo 'no namespaces were seen while it ran'; return 1; }
}
inhabited() {
    local space
    for space in ${spaces[@]+"${spaces[@]}"}; do
        for p in /proc/[0-9]*/ns/net; do [ "$(readlink "$p" 2>/dev/null)" = "$space" ] && echo "$space $p"; done
    done
}
# Waits for a condition that the kernel brings about; 10 s at most.
nothing_left() {
    local end=$((SECONDS + 10)) left
    while left=$(marked) && [ -n "$left" ]; do
        [ $SECONDS -lt $end ] || { echo "still there: $left"; return 1; }
        read -rt 0.05 <> <(:) || :
    done
    left=$(inhabited)
    [ -z "$left" ] || { echo "still inhabited: $left"; return 1; }
    ! grep -F "$out" /proc/self/mountinfo || { echo "a mount is left"; return 1; }
    [ -z "$(ls -d /sys/fs/cgroup/unified/*rank* /dev/shm/*rank* 2>/dev/null)" ] || { echo "cgroups or shared memory left"; return 1; }
}

# Starts a run in the background and waits until its live output shows $1.
start_until() { # PATTERN
    rm -rf "$out"
    mkfifo "$TMPDIR/said.$2"
    "$BIN/rankquake" run "$scenario" --out "$out" >"$TMPDIR/said.$2" 2>&1 &
    harness=$!
    exec 7<"$TMPDIR/said.$2"
    local line
    while IFS= read -r -t 60 -u 7 line; do
        echo "$line" >>"$TMPDIR/log.$2"
        [[ $line =~ $1 ]] && return 0
    done
    return 1
}

BIN=$(cd "$BIN" && pwd)
"$BIN/rankquake" run "$scenario" --out "$TMPDIR/first" >"$TMPDIR/first.log" 2>&1
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
