#!/usr/bin/env bash
# The harness is killed at random moments of its run, control run included: what remains is files, clean
# takes them away, and says then that there is nothing to clean. KILLS=200 for the soak; SEED repeats.
# deadline: 120 s
# alone: it looks for whatever a killed harness may leave on the host
set -u
. tests/live/patience.bash
scenario=$TMPDIR/killed.yaml
out=$TMPDIR/out
bad=0
BIN=$(cd "$BIN" && pwd)
. tests/live/traces.bash
export XDG_CACHE_HOME=$TMPDIR/cache
cat >"$scenario" <<END
scenario: killed
cluster: {nodes: 2}
job:
  nnodes: "1:2"
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=30, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt"]
timeline: [{when: {step: 12}, fault: worker-kill, on: rank 1}]
END
RANDOM=${SEED:=$RANDOM}
echo "SEED=$SEED"

begin=${EPOCHREALTIME/./}
"$BIN/rankquake" run --isolation namespaces "$scenario" --out "$out" >"$TMPDIR/said" 2>&1
rc=$?
took_ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
[ $rc = 4 ] && { tail -n 1 "$TMPDIR/said"; exit 77; }
[ $rc = 0 ] || { cat "$TMPDIR/said"; exit 1; }

for ((n = 1; n <= ${KILLS:-4}; n++)); do
    rm -rf "$out"
    # Every other time there is no control run yet.
    ((n % 2)) && rm -rf "$XDG_CACHE_HOME/rankquake/control"
    "$BIN/rankquake" run --isolation namespaces "$scenario" --out "$out" >"$TMPDIR/said" 2>&1 &
    harness=$!
    moment_ms=$((RANDOM * took_ms / 32768))
    read -rt "$((moment_ms / 1000)).$(printf %03d $((moment_ms % 1000)))" <> <(:)
    note_spaces >/dev/null
    kill -KILL $harness 2>/dev/null
    wait $harness 2>/dev/null
    nothing_left || { echo "kill $n, after $moment_ms ms"; bad=1; }
    mkdir -p "$out"
    "$BIN/rankquake" clean "$out" >"$TMPDIR/cleaned" 2>&1
    rc=$?
    [ $rc = 0 ] || { echo "kill $n, after $moment_ms ms: clean exits $rc"; cat "$TMPDIR/cleaned"; bad=1; }
    [ "$("$BIN/rankquake" clean "$out" 2>&1)" = 'nothing to clean' ] ||
        { echo "kill $n, after $moment_ms ms: clean did not clean"; cat "$TMPDIR/cleaned"; bad=1; }
    left=$(find "$out" -name scratch -o -name presence.json)
    [ -z "$left" ] || { echo "kill $n, after $moment_ms ms: left after clean: $left"; bad=1; }
done
exit $bad
