#!/usr/bin/env bash
# What the wire can do to frames: each is felt, counted from node to node, and over when it is healed; where no frame comes that
# it is about, the verdict is open and says so; and nodes without a wire are told before anything begins.
# deadline: 480 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

# The counter of what was done at the end of the run, from n2 and to it.
counted() { # counted LABEL KEY
    grep '"kind":"wire"' "$dir"/out/*/history.jsonl | grep -q "\"$2\":{\"n[0-9]\":[1-9]" || fail "$1: the wire counted no $2"
}

for file in network/poor-link.yaml network/mtu-black-hole.yaml network/connections-reset.yaml network/connections-refused.yaml \
    network/silent-corruption.yaml; do
    kind=$(basename $file .yaml)
    runs "$kind" 0 scenarios/$file
    case $kind in
    poor-link) for key in lost duplicated reordered corrupted throttled; do counted $kind ${key}_to; done ;;
    mtu-black-hole) counted $kind oversize_to ;;
    connections-reset) counted $kind reset_to ;;
    connections-refused) counted $kind refused_to && counted $kind blocked_to ;;
    silent-corruption) counted $kind corrupted_to ;;
    esac
done

for isolation in namespaces processes; do
    runs "one way, $isolation" 0 scenarios/network/one-way.yaml --isolation $isolation
    recorded "one way, $isolation" '"kind":"fault-evidence","id":"dumb"'
done

# A network that comes and goes, cut at the sockets: were it gone for good, step 40 would never come. And one that nobody uses.
cat >"$dir/sockets.yaml" <<EOF
cluster: {nodes: 2, isolation: processes}
job:
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=60, --compute-ms=5, --collective-timeout=60]
timeline:
  - {id: flap, when: {step: 5}, fault: net-flap, with: {period: 300ms, down: 150ms, planes: data}, on: n1}
  - {id: over, when: {after: flap, step: 40}, heal: flap}
limits: {total: 240s}
EOF
runs 'a flapping network at the sockets' 0 "$dir/sockets.yaml"
recorded 'a flapping network at the sockets' '"source":"kernel","kind":"fault-evidence","id":"flap"'
sed 's/planes: data/planes: ssh/' "$dir/sockets.yaml" >"$dir/nobody.yaml"
runs 'a flapping network that nobody uses' 2 "$dir/nobody.yaml"

# What the kernel of a node says of frames whose checksum is wrong; where it was mended it says nothing.
cat >"$dir/corrupted.yaml" <<EOF
cluster: {nodes: 2}
job:
  rdzv_conf: $patient_map
  run: [bash, -c, "ranktrain --steps=30 --collective-timeout=60; rc=\$?; awk '/^Tcp: [0-9]/ { print \"damaged\", \$NF }' /proc/net/snmp; exit \$rc"]
timeline:
  - {id: it, when: {step: 5}, fault: net-corrupt, with: {share: 20%}, on: n1}
  - {id: over, when: {after: it, step: 15}, heal: it}
limits: {total: 240s}
EOF
runs 'damaged frames' 0 "$dir/corrupted.yaml"
grep -rhq '^damaged [1-9]' "$dir"/out/*/logs || fail 'damaged frames: no kernel saw a wrong checksum'

# Each of them, where nobody sends anything that it is about.
{
    printf 'cluster: {nodes: 2}\njob:\n  rdzv_conf: %s\n  run: [ranktrain, --steps=40]\nlimits: {total: 240s}\ntimeline:\n' "$patient_map"
    step=0
    for fault in loss duplicate reorder corrupt corrupt-silent rate mtu reset refuse block flap; do
        case $fault in corrupt-silent | block) on=n0 ;; *) on=n1 ;; esac # beside what would do the same
        printf '  - {id: %s, when: {step: %d}, fault: net-%s, with: {planes: ssh}, on: %s, for: 50ms}\n' $fault $((step += 3)) $fault $on
    done
} >"$dir/idle.yaml"
runs 'a poor link that nobody uses' 2 "$dir/idle.yaml"
for fault in loss duplicate reorder corrupt corrupt-silent rate mtu reset refuse block flap; do
    recorded "net-$fault that nobody feels" '"kind":"fault-unfelt","id":"'$fault'"'
done

"$BIN/rankquake" run scenarios/network/poor-link.yaml --isolation processes --out "$dir/none" >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] || fail "a poor link without a wire: exit $rc, not 4"
said 'a poor link without a wire' 'there is no wire on which frames could be held back'
[ ! -e "$dir/none" ] || fail 'a poor link without a wire: something was begun'
exit $failed
