#!/usr/bin/env bash
# A harness that is stopped for 7 s, alone or with all that it started, as on a virtual machine that is paused: no job
# has failed for that, and none has passed. Before round 1, in training, at a fault, at the end.
# deadline: 240 s
set -u
. tests/live/patience.bash
cat >"$TMPDIR/s.yaml" <<'END_OF_SCENARIO'
scenario: stopped
cluster: {nodes: 3, start: 2}
job:
  nnodes: "2:3"
  workers_per_node: 2
  max_restarts: 3
  rdzv_conf: {last_call_timeout: 2s}      # so long both agents are there and no worker yet
  run: [ranktrain, --steps=90, --compute-ms=10, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt"]
timeline: [{id: kill, when: {step: 50}, fault: worker-kill, on: rank 1}]
expect: {outcome: succeeded, world_sizes: [4, 4], restarts: 1, recover_within: 10s, model: same-as-undisturbed}
limits: {total: 2m}
END_OF_SCENARIO
# At the end it would be gone before it can be stopped: a worker stands still there.
sed 's/^\(timeline: .*\)]$/\1, {id: late, when: {after: kill, event: done}, fault: worker-hang, on: rank 0, for: 3s}]/; s/ recover_within: 10s,//' \
    "$TMPDIR/s.yaml" >"$TMPDIR/done.yaml"
bad=0
complain() { # complain FILE WHAT
    echo "$2"
    cat "$1"
    bad=1
}
all_of() { # all_of PID: itself and all below it
    local pid
    echo "$1"
    for pid in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        all_of "$pid"
    done
}

# Makes the control run and shows whether nodes can be here at all.
"$BIN/rankquake" run --isolation namespaces "$TMPDIR/s.yaml" --out "$TMPDIR/first" >"$TMPDIR/first.log" 2>&1
rc=$?
[ $rc = 4 ] && { tail -n 1 "$TMPDIR/first.log"; exit 77; }
[ $rc = 0 ] || only_harness_was_late "$TMPDIR/first.log" || complain "$TMPDIR/first.log" "undisturbed: exit $rc, wanted 0"

# Stops it when the history shows the moment. It takes real time: how long it was away is what is asked about.
stop_at() ( # stop_at N alone|all MOMENT
    n=$1
    shift
    local log=$TMPDIR/log.$n out=$TMPDIR/out.$n line harness watcher stopped rc
    mkfifo "$TMPDIR/said.$n" "$TMPDIR/seen.$n"
    "$BIN/rankquake" run --isolation namespaces "${scenario-$TMPDIR/s.yaml}" --out "$out" >"$TMPDIR/said.$n" 2>&1 &
    harness=$!
    exec 7<"$TMPDIR/said.$n"
    while IFS= read -r -t 180 -u 7 line; do
        echo "$line" >>"$log"
        [[ $line =~ ^stopped,\ seed ]] && break
    done
    tail -n +1 -f --pid=$harness "$out"/*/history.jsonl >"$TMPDIR/seen.$n" 2>/dev/null &
    watcher=$!
    exec 8<"$TMPDIR/seen.$n"
    timeout 300 grep -qE -m 1 -- "$2" <&8
    stopped=$harness
    kill -STOP $harness 2>/dev/null # first, for the others are not found at once
    [ "$1" = alone ] || stopped=$(all_of $harness)
    # shellcheck disable=SC2086
    kill -STOP $stopped 2>/dev/null
    exec 8<&-
    sleep 7
    # shellcheck disable=SC2086
    kill -CONT $stopped 2>/dev/null
    kill $watcher 2>/dev/null
    cat <&7 >>"$log"
    exec 7<&-
    wait $harness
    rc=$?
    wait $watcher 2>/dev/null
    [ $rc = 2 ] || complain "$log" "$1, at $2: exit $rc, wanted 2"
    grep -q 'harness_health the harness itself was away for \([6-9]\|[1-9][0-9]\)' "$log" || complain "$log" "$1, at $2: nobody says that it was away"
    grep -qE '^  ✗' "$log" && complain "$log" "$1, at $2: something failed"
    "$BIN/rankquake" judge "$out"/*/ >"$TMPDIR/again.$n" 2>&1
    rc=$?
    [ $rc = 2 ] || complain "$TMPDIR/again.$n" "$1, at $2: judged again it ends $rc, wanted 2"
    exit $bad
)

# Three at a time: most of it is waiting.
await() { # await PID...
    local pid
    for pid; do wait "$pid" || bad=1; done
}
runs=()
stop_at 1 alone '"agent-start","node":"n1"' & runs+=($!)
stop_at 2 alone '"step":20,' & runs+=($!)
stop_at 3 alone '"fault-in-force"' & runs+=($!)
await "${runs[@]}"
runs=()
scenario=$TMPDIR/done.yaml stop_at 4 alone '"done"' & runs+=($!)
stop_at 5 all '"agent-start","node":"n1"' & runs+=($!)
stop_at 6 all '"fault-in-force"' & runs+=($!)
await "${runs[@]}"
exit $bad
