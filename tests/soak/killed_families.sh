#!/usr/bin/env bash
# The harness is killed (SIGKILL) while faults of each family are in force: no process, namespace, mount, cgroup, shared memory
# or port is left, and clean takes away what files remain. KILLS=200 in each family, MINUTES=120 after which no further one of a
# family is begun; FAMILIES='network clock' for some; SEED repeats. The moment is that of the record fault-in-force, and up to 100 ms after it. Of each family every fault has its turn.
# deadline: 36000 s
# alone: it looks for whatever a killed harness may leave on the host
set -u
BIN=$(cd "$BIN" && pwd)
out=$TMPDIR/out
dir=$TMPDIR
export XDG_CACHE_HOME=$TMPDIR/cache
. tests/live/traces.bash
. tests/soak/faults.bash
RANDOM=${SEED:=$RANDOM}
echo "SEED=$SEED"
bad=0

# The first line that matches of a file that another process writes; fails when the harness has ended without it.
wait_for() { # wait_for PATTERN FILE
    local line
    tail -n +1 -F --pid="$harness" "$2" 2>/dev/null | while IFS= read -r line; do
        [[ $line =~ $1 ]] && exit 7
    done
    [ "${PIPESTATUS[1]}" = 7 ]
}
kill_one() { # kill_one FAULT N
    local fault=$1 history
    [ -e "$TMPDIR/$fault.yaml" ] || scenario_of "$TMPDIR/$fault.yaml" "$fault" 400 "$(entry_of it "$fault" '{step: 20}')"
    rm -rf "$out"
    mkdir -p "$out"
    "$BIN/rankquake" run "$TMPDIR/$fault.yaml" --out "$out" >"$TMPDIR/said" 2>&1 &
    harness=$!
    # The run's folder is named by its time: it is told as soon as it is there.
    history=
    while [ -z "$history" ] && kill -0 $harness 2>/dev/null; do
        read -rt 0.02 <> <(:) || :
        history=$(ls "$out"/*/history.jsonl 2>/dev/null | head -n 1)
    done
    if [ -n "$history" ] && wait_for '"fault-in-force"' "$history"; then
        struck=$((struck + 1))
        read -rt "0.$(printf %03d $((RANDOM % 100)))" <> <(:) || :
        note_spaces >/dev/null
    else
        missed[$fault]=1
    fi
    kill -KILL $harness 2>/dev/null
    wait $harness 2>/dev/null
    host_as_before || { echo "$fault, kill $2"; bad=1; }
    "$BIN/rankquake" clean "$out" >"$TMPDIR/cleaned" 2>&1 || { echo "$fault, kill $2: clean"; cat "$TMPDIR/cleaned"; bad=1; }
    [ -z "$(find "$out" -name scratch -o -name presence.json)" ] || { echo "$fault, kill $2: files left"; bad=1; }
}

for family in ${FAMILIES-$(families)}; do
    mapfile -t names < <(faults_of "$family")
    struck=0
    end=$((SECONDS + ${MINUTES:-120} * 60))
    declare -A missed=()
    for ((n = 1; n <= ${KILLS:-200} && SECONDS < end; n++)); do
        kill_one "${names[(n - 1) % ${#names[@]}]}" $n
    done
    echo "$family: $((n - 1)) runs of ${#names[@]} faults killed, $struck with the fault in force, $SECONDS s so far$([ $bad = 0 ] && echo ', nothing left')"
    [ ${#missed[@]} = 0 ] || { echo "$family: not always in force: ${!missed[*]}"; bad=1; }
done
exit $bad
