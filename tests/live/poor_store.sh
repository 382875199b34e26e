#!/usr/bin/env bash
# rankrun's store stands still, is slow, dies and comes back empty, loses answers, its job's lease and its history: each is felt, and the
# job goes on; where nothing shows it the verdict is open and says so. What is killed or stopped cannot hide it.
# deadline: 480 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

for isolation in namespaces processes; do
    runs "a store that stands still and dies, $isolation" 0 scenarios/store/store-killed.yaml --isolation $isolation
    recorded "a store that dies, $isolation" '"source":"kernel","kind":"fault-evidence","id":"again"'
    recorded "a store that stands still, $isolation" '"source":"kernel","kind":"fault-evidence","id":"frozen"'
    recorded "a store that stands still, $isolation" '"kind":"fault-recovered","id":"frozen"'
done
runs 'answers that are lost' 0 scenarios/store/answers-lost.yaml
recorded 'answers that are lost' '"source":"wire","kind":"fault-evidence","id":"lost".*"count":[1-3]'
recorded 'answers that are lost' '"kind":"fault-recovered","id":"lost"'
runs 'a lease that is revoked' 0 scenarios/store/lease-lost.yaml
recorded 'a lease that is revoked' '"source":"disk","kind":"fault-evidence","id":"revoked".*"after":0'
runs 'a history that is compacted' 0 scenarios/store/compacted.yaml
recorded 'a history that is compacted' '"source":"disk","kind":"fault-evidence","id":"forgotten".*"after":1'

job() { # job ENTRY...: 2 nodes that train for a while
    printf 'cluster: {nodes: 2}\njob:\n  nnodes: 2\n  rdzv_conf: %s\n  run: [ranktrain, --steps=300, --compute-ms=10]\ntimeline:\n' \
        "$patient_map" >"$dir/job.yaml"
    printf '  - {%s}\n' "$@" >>"$dir/job.yaml"
    echo 'limits: {total: 240s}' >>"$dir/job.yaml"
}
# Whoever does not answer cannot be read, nor has anything taken away; and who is cut off has no answer to lose.
job 'id: still, when: {step: 20}, fault: store-freeze, on: store' \
    'id: lease, when: {after: still}, fault: store-lease-lost, on: store' \
    'id: past, when: {after: lease}, fault: store-compact, on: store' \
    'id: over, when: {after: past}, heal: still'
runs 'a store that cannot be read' 2 "$dir/job.yaml"
recorded 'a store that cannot be read' '"kind":"fault-unfelt","id":"lease".*the store was not read'
recorded 'a store that cannot be read' '"kind":"fault-unfelt","id":"past".*the store was not read'
job 'id: cut, when: {step: 20}, fault: net-partition, with: {groups: "store|n0,n1"}, for: 1500ms' \
    'id: lost, when: {after: cut}, fault: store-answer-lost, on: n1, for: 100ms' \
    'id: reboot, when: {after: cut, plus: 2s}, fault: node-reboot, on: store, with: {down: 300ms}' \
    'id: freeze, when: {after: reboot}, fault: store-freeze, on: store, for: 20ms' \
    'id: restart, when: {after: reboot}, fault: store-restart, on: store' \
    'id: slow, when: {after: reboot}, fault: store-slow, on: store, for: 20ms' \
    'id: kill, when: {after: reboot}, fault: store-kill, on: store'
runs 'answers that nobody waits for, and a store that is off already' 2 "$dir/job.yaml"
said 'answers that nobody waits for' 'no answer was lost'
for id in freeze restart slow kill; do
    recorded "a store that is off already: $id" '"kind":"fault-not-fired","id":"'$id'".*matched nothing that was alive'
done

# A store that is slow answers late; one that is away before it has answered once shows nothing of it, nor does one of a signal
# that it ignores.
job 'id: ignored, when: {step: 10}, fault: store-signal, with: {signal: SIGWINCH}, on: store' \
    'id: slow, when: {step: 20}, fault: store-slow, on: store, with: {delay: 50ms}, for: 200ms' \
    'id: away, when: {after: slow, plus: 600ms}, fault: store-slow, on: store, with: {delay: 1s}' \
    'id: again, when: {after: away}, fault: store-restart, on: store'
sed -i 's/steps=300/steps=120/' "$dir/job.yaml"
runs 'a store that is slow' 2 "$dir/job.yaml" --isolation processes
recorded 'a store that is slow' '"source":"disk","kind":"fault-evidence","id":"slow".*"slowest_ns":[0-9]{8}'
recorded 'a store that is slow' '"kind":"fault-recovered","id":"slow"'
recorded 'a store that is slow' '"kind":"fault-unfelt","id":"ignored".*no handler for the signal'
recorded 'a store that is slow' '"kind":"fault-unfelt","id":"away".*(the store was not read|no answer of the store was late)'

# What does not fit the store is said before anything is begun.
refused() { # refused WHAT STORE ENTRY SENTENCE
    job "$3"
    sed -i "s/{nodes: 2}/{nodes: 2, store: $2}/" "$dir/job.yaml"
    "$BIN/rankquake" lint "$dir/job.yaml" >"$dir/said" 2>&1
    rc=$?
    [ $rc = 64 ] || fail "$1: exit $rc, not 64"
    said "$1" "$4"
}
refused 'data that is kept nowhere' embedded 'when: {step: 1}, fault: store-restart, on: store, with: {data: kept}' 'keeps nothing on a disk'
refused 'a member without its disk' etcd-3 'when: {step: 1}, fault: store-restart, on: store-1, with: {data: empty}' 'must be removed and added'
refused 'a member that is not there' etcd 'when: {step: 1}, fault: store-kill, on: store-1' 'there is no store-1: one node alone'
refused 'a store that an agent serves' '{on: n1}' 'when: {step: 1}, fault: store-kill, on: store' 'served by the agent of n1'
refused 'a store that cannot be full' embedded 'when: {step: 1}, fault: store-full, on: store' 'has no database that could be full'
refused 'an etcd that is full at 2 GiB' etcd 'when: {step: 1}, fault: store-full, on: store' 'store_quota_mb: 16'
exit $failed
