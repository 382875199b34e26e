#!/usr/bin/env bash
# Nodes that go off and come back, are taken away with a notice, or have too little of something: each is felt by the kernel's
# word and over when it is healed; where nothing shows it, the verdict is open and says so.
# alone: the kernel kills here for want of memory, and a run beside it cannot tell whom
# deadline: 480 s
set -u
vforked=$(realpath "${OUT:-build/release}/tests/live/spawn_vforked")
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

job() { # job FAULT RUN [CLUSTER]
    printf 'cluster: {nodes: 2%s}\njob:\n  nnodes: "1:2"\n  max_restarts: 3\n  rdzv_conf: %s\n  run: %s\ntimeline:\n  - {id: it, when: {step: 5}, %s}\nlimits: {total: 240s}\n' \
        "${3-}" "$watchful_map" "$2" "$1" >"$dir/job.yaml"
}
trains="[ranktrain, --steps=20]"

# ---- off, and on again ----

runs 'a node that reboots' 0 scenarios/membership/node-reboots.yaml
recorded 'a node that reboots' '"source":"kernel","kind":"fault-evidence","id":"reboot".*anew'
recorded 'a node that reboots' '"kind":"fault-recovered","id":"reboot"'
# Silent: nobody hears it go.
sed 's/count: 2/&, silent: true/' scenarios/membership/node-flaps.yaml >"$dir/flaps.yaml"
runs 'a node that flaps' 0 "$dir/flaps.yaml" --isolation processes
recorded 'a node that flaps' '"kind":"fault-evidence","id":"flap","n":2'

job 'fault: node-reboot, with: {down: 100s}, on: n1' "$trains"
runs 'a node that is not back by the end' 2 "$dir/job.yaml"
said 'a node that is not back by the end' 'nothing was seen to start on it again'
job 'fault: node-flap, with: {count: 2, period: 100s, down: 10ms}, on: n1' "$trains"
runs 'a node that goes off once' 2 "$dir/job.yaml"
said 'a node that goes off once' 'did not come again|after 1 of its 2 times|nothing was seen to start on it again'

# What strikes a node that is off already, or switches on one that is on, does nothing; nor is asked to leave who is stopped, and is
# then off without a word.
cat >"$dir/job.yaml" <<END
cluster: {nodes: 2}
job:
  nnodes: "1:2"
  rdzv_conf: $watchful_map
  run: [ranktrain, --steps=40, --compute-ms=5]
timeline:
  - {id: hang, when: {step: 5}, fault: agent-hang, on: n1}
  - {id: reboot, when: {after: hang, plus: 100ms}, fault: node-reboot, with: {silent: true, down: 300ms}, on: n1}
  - {id: leave, when: {after: hang}, fault: node-leave, on: n1}
  - {id: kill, when: {after: reboot}, fault: node-kill, on: n1}
  - {id: agent, when: {after: reboot}, fault: agent-kill, on: n1}
  - {id: flap, when: {after: reboot}, fault: node-flap, with: {count: 2, period: 2s, down: 100ms}, on: n1}
  - {id: start, when: {after: reboot, round: 2}, fault: node-start, on: n1}
  - {id: uptime, when: {after: reboot, round: 2}, fault: clock-monotonic, with: {uptime: 100h}, on: n1}
  - {id: asleep, when: {after: reboot, round: 2}, fault: clock-boot, with: {asleep: 100h}, on: n1}
limits: {total: 240s}
END
runs 'a node that is off already, or on' 2 "$dir/job.yaml"
recorded 'a node that loses its power and comes back' '"kind":"fault-in-force","id":"reboot".*"silences-node"'
recorded 'a node that loses its power and comes back' '"kind":"fault-evidence","id":"reboot"'
recorded 'a node that loses its power and comes back' '"kind":"fault-recovered","id":"reboot","n":1}'
recorded 'a stopped agent whose node is another by then' '"kind":"fault-recovered","id":"hang","n":1}'
recorded 'a stopped agent that is asked to leave' '"kind":"fault-unfelt","id":"leave"'
for id in kill agent flap; do recorded "$id of a node that is off" '"kind":"fault-not-fired","id":"'$id'".*matched nothing that was alive'; done
for id in start uptime asleep; do recorded "$id of a node that is on" '"kind":"fault-not-fired","id":"'$id'".*was on already'; done

# Nodes that have nothing to say to each other, and whose agents cannot be stopped; that of n1 wants no processor.
# It is ready when that of n0 has been stopped in vain, and has done with it all by half a second later.
cat >"$dir/job.yaml" <<END
cluster: {nodes: 2, store: none}
launcher:
  - bash
  - -c
  - |
    RANK={node} WORLD_SIZE={nodes} {worker}
    [ -e $dir/out/*/history.jsonl ] || exit 0
    [ {node} = 0 ] || { grep -m 1 'fault-recovered","id":"hang"' < <(tail -n +1 -f $dir/out/*/history.jsonl); exec $vforked <> <(:); }
    exec $vforked < <(grep -m 1 'fault-[a-z-]*","id":"last"' < <(tail -n +1 -f $dir/out/*/history.jsonl))
job: {run: [echo, begun]}
timeline:
  - {id: hang, when: {log: '/ready/'}, fault: agent-hang, on: n0, for: 20ms}
  - {id: steal, when: {after: hang, log: '/ready/', plus: 500ms}, fault: node-cpu-steal, on: n1, for: 100ms}
  - {id: cut, when: {after: steal}, fault: net-partition, on: n0, for: 50ms}
  - {id: off, when: {after: steal, plus: 150ms}, fault: node-poweroff, on: n1}
  - {id: last, when: {after: off}, fault: node-freeze, on: n0, for: 100ms}
limits: {total: 240s}
END
runs 'nodes that feel nothing' 2 "$dir/job.yaml"
for id in hang steal cut off; do recorded "$id of a node that feels nothing" '"kind":"fault-unfelt","id":"'$id'"'; done

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
limits: {total: 240s}
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
