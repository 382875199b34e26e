#!/usr/bin/env bash
# The harness stands still while faults are in force: after limits.dead_man the nodes, the wire and the keeper of control groups
# undo them by themselves, so that the job goes on to its end before anybody wakes the harness; then the run ends, inconclusive.
# deadline: 180 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

until_true() { # until_true WHAT COMMAND...: what processes bring about that nobody here is told of
    local end=$((SECONDS + 60))
    until "${@:2}"; do
        [ $SECONDS -lt $end ] || { fail "$1: not within 60 s"; return 1; }
        read -rt 0.1 <> <(:) || :
    done
}
groups() { find /sys/fs/cgroup -maxdepth 6 -name "rankquake-node-$harness-*" 2>/dev/null; }
no_groups() { [ -z "$(groups)" ]; }
counts() { [ "$(cat $3 2>/dev/null | grep -c "$2")" -ge "$1" ]; } # counts N PATTERN FILES
ahead_ns() { od -An -t d8 -j 24 -N 8 "$dir"/out/*/scratch/n1.clock | tr -d ' '; }

for isolation in namespaces processes; do
    cat >"$dir/job.yaml" <<END
cluster: {nodes: 2, isolation: $isolation}
job:
  rdzv_conf: $patient_map
  run: [sh, -c, "ranktrain --steps=60 --compute-ms=5 && echo done >>{shared}/done"]
limits: {dead_man: 2s, total: 1m}
timeline:
  - {id: hang, when: {step: 20}, fault: worker-hang, on: rank 1}
  - {id: cut, when: {after: hang}, fault: net-partition, on: n1, with: {planes: data}}
  - {id: slow, when: {after: hang}, fault: node-cpu, on: n1, with: {percent: 50}}
  - {id: clock, when: {after: hang}, fault: clock-jump, on: n1, with: {by: -1h}}
END
    rm -rf "$dir/out"
    "$BIN/rankquake" run "$dir/job.yaml" --out "$dir/out" >"$dir/said" 2>&1 </dev/null &
    harness=$!
    until_true "$isolation: all in force" counts 4 '"kind":"fault-in-force"' "$dir/out/*/history.jsonl" || { kill -KILL $harness; break; }
    kill -STOP $harness
    no_groups && fail "$isolation: there is no control group"
    [ "$(ahead_ns)" -lt 0 ] || fail "$isolation: the clock was not wrong"
    until_true "$isolation: the job ends while the harness stands still" counts 2 done "$dir/out/*/scratch/shared/done"
    until_true "$isolation: the control group is gone" no_groups
    [ "$(ahead_ns)" = 0 ] || fail "$isolation: the clock is still wrong"
    kill -CONT $harness
    wait $harness
    rc=$?
    [ $rc = 2 ] || fail "$isolation: exit $rc, not 2"
    said "$isolation" 'the harness stood still for [0-9.]+ s, and limits.dead_man had what lasted undone'
    recorded "$isolation" '"kind":"dead-man","who":"n[01]",.*"fault":"worker-hang","name":"n[01]/0 .rank 1.","error":null'
    [ $isolation = processes ] || recorded "$isolation" '"kind":"dead-man","who":"the wire"'
    for id in hang cut slow clock; do recorded "$isolation: $id" '"kind":"fault-recovered","id":"'$id'","n":1}'; done
done
exit $failed
