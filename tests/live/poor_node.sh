#!/usr/bin/env bash
# Nodes that go off and come back, are taken away with a notice, or have too little of something: each is felt by the kernel's
# word and over when it is healed; where nothing shows it, the verdict is open and says so.
# deadline: 480 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

job() { # job FAULT RUN [CLUSTER]
    printf 'cluster: {nodes: 2%s}\njob:\n  nnodes: "1:2"\n  max_restarts: 3\n  rdzv_conf: %s\n  run: %s\ntimeline:\n  - {id: it, when: {step: 5}, %s}\nlimits: {total: 60s}\n' \
        "${3-}" "$watchful_map" "$2" "$1" >"$dir/job.yaml"
}
trains="[ranktrain, --steps=20]"

# ---- off, and on again ----

runs 'a node that reboots' 0 scenarios/membership/node-reboots.yaml
recorded 'a node that reboots' '"source":"kernel","kind":"fault-evidence","id":"reboot".*anew'
recorded 'a node that reboots' '"kind":"fault-recovered","id":"reboot"'
runs 'a node that flaps' 0 scenarios/membership/node-flaps.yaml --isolation processes
recorded 'a node that flaps' '"kind":"fault-evidence","id":"flap","n":2'

job 'fault: node-reboot, with: {down: 100s}, on: n1' "$trains"
runs 'a node that is not back by the end' 2 "$dir/job.yaml"
said 'a node that is not back by the end' 'nothing was seen to start on it again'
job 'fault: node-flap, with: {count: 2, period: 100s, down: 10ms}, on: n1' "$trains"
runs 'a node that goes off once' 2 "$dir/job.yaml"
said 'a node that goes off once' 'it (\(node-flap\) )?did not come again|after 1 of its 2 times|nothing was seen to start on it again'
exit $failed
