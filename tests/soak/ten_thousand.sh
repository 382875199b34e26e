#!/usr/bin/env bash
# Ten thousand faults, one after the other, in runs of 500 each: every fault that leaves its worker and its node alive and
# needs nothing but its example, again and again; nothing is left after any run, and the harness itself does not grow.
# FAULTS=10000 how many; PER_RUN=500 in one run.
# deadline: 36000 s
# alone: it looks for whatever is left on the host
set -u
BIN=$(cd "$BIN" && pwd)
out=$TMPDIR/out
dir=$TMPDIR
export XDG_CACHE_HOME=$TMPDIR/cache
. tests/live/traces.bash
. tests/soak/faults.bash
bad=0 total=0 fired=0 in_force=0 felt=0 run=0
shm_before=$(ls /dev/shm | sort)

# Of what it does to the world: nobody ends, and it is there again soon.
harmless() { # harmless FAULT
    ! "$BIN/rankquake" explain "$1" | grep -qE '^  (ends-|starts-node|silences-node|stalls-node|stops-worker|asks-to-leave|parts-network|damages-|hinders-|loud)'
}
names=()
for name in $("$BIN/rankquake" list faults | awk '{ print $1 }'); do
    example_of "$name" | grep -qE 'when: \{(step|time):' && harmless "$name" && names+=("$name")
done
[ ${#names[@]} -gt 0 ] || { echo 'no fault is harmless'; exit 1; }
echo "faults: ${names[*]}"
while ((total < ${FAULTS:=10000})); do
    run=$((run + 1))
    per=${PER_RUN:-500}
    entries=()
    for ((i = 0; i < per; i++)); do
        entries+=("$(entry_of "${names[i % ${#names[@]}]}" "{step: $((i + 5))}" for |
            sed -E "s/^\{id: /{id: f$i-/; s/for: [0-9a-z.]+/for: 2ms/")")
    done
    scenario_of "$TMPDIR/many.yaml" $((per + 50)) "${entries[@]}"
    rm -rf "$out"
    "$BIN/rankquake" run "$TMPDIR/many.yaml" --set limits.total=30m --out "$out" >"$TMPDIR/said" 2>&1
    rc=$?
    # 2: what lasts 2 ms may pass without anything to be seen
    [ $rc = 0 ] || [ $rc = 2 ] || { echo "run $run: exit $rc"; tail -n 30 "$TMPDIR/said"; bad=1; break; }
    fired=$((fired + $(cat "$out"/*/history.jsonl | grep -c '"kind":"fault-fired"')))
    in_force=$((in_force + $(cat "$out"/*/history.jsonl | grep -c '"kind":"fault-in-force"')))
    felt=$((felt + $(cat "$out"/*/history.jsonl | grep -c '"kind":"fault-evidence"')))
    total=$((total + per))
    nothing_left || { echo "run $run"; bad=1; }
    [ "$(ls /dev/shm | sort)" = "$shm_before" ] || { echo "run $run: left in /dev/shm: $(ls /dev/shm)"; bad=1; }
done
echo "$total faults in $run runs: $fired fired, $in_force in force, $felt with evidence"
[ $fired = $total ] && [ $in_force = $total ] || { echo 'not all of them came in force'; bad=1; }
exit $bad
