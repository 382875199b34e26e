#!/usr/bin/env bash
# Ten thousand faults, one after the other, in runs of 500 each: every fault that leaves its worker and its node alive and
# needs nothing but its example, again and again, each for 2 ms; after every run nothing is left of it on the host. Left out is
# what changes bytes past the checksum: the model is wrong from then on, and some hundred steps later the job cannot go on.
# FAULTS=10000 how many; PER_RUN=500 in one run; MINUTES=600 after which no further run is begun.
# deadline: 36000 s
# alone: it looks for whatever is left on the host
set -u
BIN=$(cd "$BIN" && pwd)
out=$TMPDIR/out
dir=$TMPDIR
export XDG_CACHE_HOME=$TMPDIR/cache
. tests/live/traces.bash
. tests/soak/faults.bash
bad=0 total=0 fired=0 in_force=0 recovered=0 lasting=0 felt=0 run=0

harmless() { # of what it does to the world: nobody ends, and it is there again soon
    [ "$1" != net-corrupt-silent ] && ! has_effect "$1" 'ends-.*|starts-node|silences-node|stalls-node|stops-worker|asks-to-leave|parts-network|damages-.*|hinders-.*|loud'
}
names=()
for name in "${all_faults[@]}"; do
    [[ ${example[$name]} =~ when:\ \{(step|time): ]] && harmless "$name" && names+=("$name")
done
# Of what contradicts each other, as two clocks do, nothing follows at the next step: one may still be being undone.
mapfile -t names < <(printf '%s\n' "${names[@]}" | awk '{ v[NR] = $0 } END { h = int((NR + 1) / 2)
    for (i = 1; i <= h; i++) { print v[i]; if (i + h <= NR) print v[i + h] } }')
[ ${#names[@]} -gt 0 ] || { echo 'no fault is harmless'; exit 1; }
echo "faults: ${names[*]}"
count() { cat "$out"/*/history.jsonl | grep -c "\"kind\":\"$1\""; }
while ((total < ${FAULTS:=10000} && SECONDS < ${MINUTES:-600} * 60)); do
    run=$((run + 1)) per=${PER_RUN:-500} entries=()
    for ((i = 0; i < per; i++)); do
        name=${names[i % ${#names[@]}]}
        entries+=("$(entry_of "f$i-$name" "$name" "{step: $((i + 5))}" 2ms)")
        has_effect "$name" lasting && lasting=$((lasting + 1))
    done
    scenario_of "$TMPDIR/many.yaml" many $((per + 50)) "${entries[@]}"
    rm -rf "$out"
    "$BIN/rankquake" run "$TMPDIR/many.yaml" --out "$out" >"$TMPDIR/said" 2>&1
    rc=$?
    # 2: what lasts 2 ms may pass without anything to be seen
    [ $rc = 0 ] || [ $rc = 2 ] || { echo "run $run: exit $rc"; tail -n 30 "$TMPDIR/said"; bad=1; break; }
    fired=$((fired + $(count fault-fired)))
    in_force=$((in_force + $(count fault-in-force)))
    recovered=$((recovered + $(count fault-recovered)))
    felt=$((felt + $(count fault-evidence)))
    total=$((total + per))
    [ "$(count fault-failed)" = 0 ] || { grep -h '"fault-failed"' "$out"/*/history.jsonl | head -n 5; bad=1; }
    ! grep -h '"fault-recovered".*"error"' "$out"/*/history.jsonl || bad=1
    host_as_before || { echo "run $run"; bad=1; }
done
echo "$total faults in $run runs, $SECONDS s: $fired fired, $in_force in force, $recovered of $lasting undone, $felt with evidence"
[ $fired = $total ] && [ $in_force = $total ] || { echo 'not all of them came in force'; bad=1; }
[ $recovered = $lasting ] || { echo 'not all that lasted was undone'; bad=1; }
exit $bad
