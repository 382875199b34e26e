#!/usr/bin/env bash
# An agent that hangs when it is asked to leave is not taken for one that has left.
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

# An agent that does not go when it is asked to is not taken for one that has left by what ends its node later.
job 'fault: agent-hang, on: n1' "$trains"
sed -i 's/^limits/  - {id: leave, when: {after: it}, fault: node-leave, on: n1}\n  - {id: off, when: {after: leave}, fault: node-kill, on: node of rank 1}\n&/' "$dir/job.yaml"
runs 'a node that is killed before it leaves' 2 "$dir/job.yaml"
recorded 'a node that is killed before it leaves' '"kind":"fault-unfelt","id":"leave".*not seen to end as one that leaves'
exit $failed
