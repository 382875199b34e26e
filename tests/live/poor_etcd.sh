#!/usr/bin/env bash
# A real etcd whose members are slow, die, end in order, come back and stand still, and whose disk quota is used up: each is
# felt and gone again; where nothing shows it the verdict is open and says so.
# deadline: 480 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/etcd.bash
. tests/live/runs.bash

runs 'members that are lost' 0 scenarios/store/etcd-members-lost.yaml
for id in one most last; do
    recorded 'members that are lost' '"source":"kernel","kind":"fault-evidence","id":"'$id'"'
done
recorded 'members that are lost' '"kind":"fault-recovered","id":"most"'
recorded 'a member that is slow' '"source":"disk","kind":"fault-evidence","id":"slow".*"slowest_ns":[0-9]{9}'
recorded 'a member that is slow' '"kind":"fault-recovered","id":"slow"'
runs 'a member that is told to end' 0 scenarios/store/store-terminated.yaml
recorded 'a member that is told to end' '"source":"kernel","kind":"fault-evidence","id":"ends"'
runs 'an etcd that is full' 0 scenarios/store/etcd-full.yaml
recorded 'an etcd that is full' '"source":"disk","kind":"fault-evidence","id":"full".*"before":0,"after":1'
recorded 'an etcd that is full' '"kind":"fault-recovered","id":"full"'

sed 's/for: 1s/with: {most: 1}, for: 100ms/; s/steps=400/steps=150/' scenarios/store/etcd-full.yaml >"$dir/room.yaml"
runs 'an etcd that has room' 2 "$dir/room.yaml"
said 'an etcd that has room' 'it was not full yet'
exit $failed
