#!/usr/bin/env bash
# Moments and faults that no scenario of the suite uses: phases of a round, a partition by groups and one
# of a single plane, a hang that ends by itself, faults in every round. Each in a real run that must pass.
# deadline: 300 s
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0

# A run of three nodes with this timeline comes out as expected, and its history has that pattern.
plays() { # plays WHAT PATTERN EXPECT TIMELINE...
    local what=$1 pattern=$2 expect=$3 file=$TMPDIR/play.yaml out=$TMPDIR/out
    shift 3
    {
        awk '/^[^ #]/ { drop = /^(about|timeline|expect):/ } !drop' scenarios/restart/worker-killed.yaml |
            sed "s/--collective-timeout=6/--collective-timeout=${deadline_s-6}/"
        printf 'expect: {%s}\ntimeline:\n' "$expect"
        printf '  - %s\n' "$@"
    } >"$file"
    rm -rf "$out"
    "$BIN/rankquake" run "$file" --out "$out" >"$TMPDIR/said" 2>&1
    local rc=$?
    [ $rc = 4 ] && { tail -n 1 "$TMPDIR/said"; exit 77; }
    [ $rc = 0 ] && grep -qE -- "$pattern" "$out"/*/history.jsonl && return
    echo "$what: exit $rc, wanted 0 and $pattern"
    cat "$TMPDIR/said"
    failed=1
}

kill='{id: kill, when: {step: 17}, fault: worker-kill, on: rank 1}'
plays 'an agent that dies as it joins' '"fault-evidence","id":"a"' 'world_sizes: [2], restarts: 0' \
    '{id: a, when: {phase: join}, fault: agent-kill, on: n2}'
plays 'an agent that dies as it acks' '"fault-evidence","id":"a"' 'world_sizes: [3, 2], restarts: 0..1' \
    "$kill" '{id: a, when: {round: 2, phase: ack}, fault: agent-kill, on: n2}'
plays 'a worker that dies before it is executed' '"fault-evidence","id":"w"' 'world_sizes: ["*", 3], restarts: 2' \
    "$kill" '{id: w, when: {round: 2, phase: start}, fault: worker-kill, on: rank 2}'
plays 'a worker that exits before its first collective' '"code":9' 'world_sizes: [3, 3, 3], restarts: 2' \
    "$kill" '{id: w, when: {round: 2, phase: first-collective}, fault: worker-exit, with: {code: 9}, on: rank 2}'
plays 'a partition of groups' '"fault-evidence","id":"p"' 'world_sizes: [3, 2, "*"], restarts: 0' \
    '{id: p, when: {step: 17}, fault: net-partition, with: {groups: "store,n0,n1|n2"}}' '{when: {after: p, round: 2}, heal: p}'
deadline_s=3 plays 'a cut of the data plane' '"fault-evidence","id":"p"' 'world_sizes: [3, 3], restarts: 1' \
    '{id: p, when: {step: 17}, fault: net-partition, with: {planes: data}, on: n1}' '{when: {after: p, round: 2}, heal: p}'
plays 'a hang that is over in time' '"fault-recovered","id":"h"' 'world_sizes: [3], restarts: 0' \
    '{id: h, when: {step: 17}, fault: worker-hang, on: n1, for: 500ms}'
# Whom the store names is who dies, by the kernel's word.
plays 'a coordinator whose node dies' '"kind":"store-said","id":"c"' 'world_sizes: [3, 2], restarts: 0' \
    '{id: c, when: {step: 17}, fault: node-kill, on: coordinator}'
node_of() { sed -n "s/.*\"kind\":\"$1\".*\"node\":\"\([^\"]*\)\".*$2.*/\1/p" "$TMPDIR"/out/*/history.jsonl; }
said=$(node_of store-said '') died=$(node_of agent-exit '"signal":9')
[[ $said = n[0-2] && $said = "$died" ]] || { echo "the store named '$said' and '$died' died"; failed=1; }
# What lasts to the end is felt, undone and counted, and the nodes are still searched for leftovers.
plays 'a partition to the end' '"kind":"leftovers","node":"n0"' 'world_sizes: [3, 2], restarts: 0' \
    '{id: p, when: {step: 17}, fault: net-partition, on: n2}'
exit $failed
