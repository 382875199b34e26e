#!/usr/bin/env bash
# A node forgets its connections: its own program is told, the peer believes in its connection until it sends, or for ever where
# the wire swallows what would tell it. A node without a connection has nothing to forget.
# deadline: 240 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

runs 'a node that forgets' 0 scenarios/network/half-open.yaml
recorded 'a node that forgets' '"source":"kernel","kind":"fault-evidence","id":"forgot".*"count":[1-9]'
recorded 'a node that forgets' '"kind":"wire".*"node":"n2".*"hushed_to":\{"n[01]":[1-9]'

cat >"$dir/idle.yaml" <<EOF
cluster: {nodes: 2}
job:
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=20]
timeline:
  - {id: it, when: {step: 5}, fault: net-half-open, with: {planes: ssh}, on: n1, for: 50ms}
limits: {total: 240s}
EOF
runs 'nothing to forget' 2 "$dir/idle.yaml"
said 'nothing to forget' 'it had no connection with another node that could be forgotten'

if ! command -v python3 >/dev/null; then
    echo 'python3 is missing, by which both ends are asked'
    exit $((failed ? 1 : 77))
fi
cat >"$dir/asked.yaml" <<EOF
cluster: {nodes: 2}
job:
  rdzv_conf: $patient_map
  run: [python3, $PWD/tests/live/half_open.py, "{out}"]
timeline:
  - {id: told, when: {log: '/^told: connected/'}, fault: net-half-open, with: {planes: data}, on: node of rank 1, until: {log: '/^told: is over/'}}
  - {id: untold, when: {log: '/^untold: connected/'}, fault: net-half-open, with: {planes: data, quiet: "true"}, on: node of rank 1}
limits: {total: 240s}
EOF
runs 'both ends' 0 "$dir/asked.yaml"
for line in 'told: forgets by ECONNABORTED' 'told: believes in state 1' 'told: learns by ECONNRESET' \
    'untold: forgets by ECONNABORTED' 'untold: believes in state 1' 'untold: learns by ETIMEDOUT'; do
    grep -rqs "$line" "$dir"/out/*/logs || fail "both ends: nobody says '$line'"
done
exit $failed
