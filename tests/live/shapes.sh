#!/usr/bin/env bash
# Partitions that are only named: plan says who is on which side, and that is how the network falls apart, on each isolation.
# A link whose directions differ, one that is good and bad in turn, and delays with a long tail.
# deadline: 240 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

runs 'shapes' 0 scenarios/network/shapes.yaml
"$BIN/rankquake" plan scenarios/network/shapes.yaml >"$dir/plan"
for shape in isolate halves majority bridge ring; do
    groups=$(sed -n 's/.*"shape":"'$shape'","groups":"\([^"]*\)".*/\1/p' "$dir"/out/*/history.jsonl)
    grep -qF "groups  ${groups:-none}," "$dir/plan" || fail "$shape: plan says others than '$groups'"
    recorded "$shape" '"source":"wire","kind":"fault-evidence","id":"'$shape'"'
done

cat >"$dir/uneven.yaml" <<EOF
cluster: {nodes: 3}
job:
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=60, --collective-timeout=60]
timeline:
  - {id: uneven, when: {step: 5},  fault: net-rate,  with: {rate_in: 4mbit, rate_out: 400mbit, planes: data}, on: n1}
  - {id: fading, when: {step: 10}, fault: net-loss,  with: {share: 2%, burst: 5, bad: 40%, good: 0.5%, planes: data}, on: n1}
  - {id: tailed, when: {step: 15}, fault: net-delay, with: {delay: 2ms, jitter: 2ms, distribution: pareto, shape: halves}}
  - {id: even,   when: {after: tailed, step: 25}, heal: uneven}
  - {id: clear,  when: {after: tailed, step: 25}, heal: fading}
  - {id: quick,  when: {after: tailed, step: 25}, heal: tailed}
limits: {total: 240s}
EOF
runs 'uneven' 0 "$dir/uneven.yaml"
for id in uneven fading tailed; do recorded "$id" '"source":"wire","kind":"fault-evidence","id":"'$id'"'; done

cat >"$dir/processes.yaml" <<EOF
cluster: {nodes: 4}
job:
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=30, --compute-ms=10, --collective-timeout=30]
timeline:
  - {id: cut, when: {step: 5}, fault: net-partition, with: {shape: majority, planes: data}, for: 300ms}
limits: {total: 240s}
EOF
runs 'processes' 0 "$dir/processes.yaml" --isolation processes
recorded 'processes' '"source":"kernel","kind":"fault-evidence","id":"cut"'
exit $failed
