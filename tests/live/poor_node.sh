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
said 'a node that goes off once' 'did not come again|after 1 of its 2 times|nothing was seen to start on it again'

# ---- too little of something ----

runs 'a poor node' 0 scenarios/membership/poor-node.yaml
for id in cpu stolen pids memory; do
    recorded "a poor node: $id" '"source":"kernel","kind":"fault-evidence","id":"'$id'"'
    recorded "a poor node: $id" '"kind":"fault-recovered","id":"'$id'","n":1}'
done

# More than anybody wants; what waits for no processor does not see it stolen.
cat >"$dir/job.yaml" <<END
cluster: {nodes: 1}
job:
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=20]
timeline:
  - {id: cpu, when: {step: 5}, fault: node-cpu, with: {percent: 100000}, on: n0}
  - {id: pids, when: {step: 6}, fault: node-pids, with: {more: 1000}, on: n0}
  - {id: memory, when: {step: 7}, fault: node-memory, with: {more: 100000}, on: n0}
limits: {total: 60s}
END
if [ "$(id -u)" = 0 ]; then # without control groups limits are lowered, or there is no such limit
    runs 'more than a node wants' 2 "$dir/job.yaml"
    for id in cpu pids memory; do
        recorded "more than a node wants: $id" '"kind":"fault-unfelt","id":"'$id'"' || grep -h '"by":"' "$dir"/out/*/history.jsonl
    done
fi

# ---- taken away with a notice ----

runs 'a node that is preempted' 0 scenarios/membership/node-preempted.yaml --keep
recorded 'a node that is preempted' '"kind":"fault-evidence","id":"taken".*has taken SIGTERM, and the node has gone off'
grep -q '"action": "terminate"' "$dir"/out/*/scratch/n2/spot/instance-action || fail 'a node that is preempted: there was no notice'
runs 'a rack that is reclaimed' 0 scenarios/membership/rack-reclaimed.yaml
[ "$(grep -c '"kind":"node-down".*"why":"killed"' "$dir"/out/*/history.jsonl)" = 2 ] || fail 'a rack that is reclaimed: two nodes did not go off'

job 'fault: node-preempt, with: {grace: 100s}, on: n1' "$trains"
runs 'a node that is not taken by the end' 2 "$dir/job.yaml"
said 'a node that is not taken by the end' 'it was not seen to end'
job 'fault: node-reclaim, with: {grace: 100s}, on: rack 1' "$trains" ', racks: [[n0], [n1]]'
runs 'a rack that is not taken by the end' 2 "$dir/job.yaml"
said 'a rack that is not taken by the end' 'it was not seen to end'
sed 's/on: rack 1/on: n1/' "$dir/job.yaml" >"$dir/node.yaml"
"$BIN/rankquake" run "$dir/node.yaml" --out "$dir/none" >"$dir/said" 2>&1
[ $? = 64 ] || fail 'half of a rack: it was not refused'
said 'half of a rack' 'it takes whole racks'

exit $failed
