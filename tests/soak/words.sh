#!/usr/bin/env bash
# Words of the timeline that take a whole cluster to come true: majority, racks, until, sticky, coordinator, store and
# store-leader, each on real nodes, judged as every run is, and its history asked for what the word says.
# deadline: 600 s
set -u
BIN=$(cd "$BIN" && pwd) || exit 1
. tests/live/patience.bash
failed=0

play() { # play NAME NODES HEAD LINES...: the cluster's other keys, and the entries of the timeline; steps and more as set
    local name=$1 nodes=$2 head=$3 rc
    shift 3
    dir=$TMPDIR/$name
    mkdir -p "$dir"
    {
        echo "cluster: {nodes: $nodes$head}"
        echo "job: {nnodes: '1:$nodes', rdzv_conf: $watchful_map, run: [ranktrain, --steps=${steps-900},"
        echo "      --compute-ms=5, --checkpoint-every=25, '--checkpoint-dir={shared}/ckpt']}"
        echo "${more-}"
        echo 'timeline:'
        printf '  - {%s}\n' "$@"
        echo 'expect: {model: same-as-undisturbed}'
    } >"$dir/word.yaml"
    (cd "$dir" && "$BIN/rankquake" run word.yaml --out run) >"$dir/said" 2>&1
    rc=$?
    [ $rc = 4 ] && tail -n 1 "$dir/said" && exit 77
    [ $rc = 0 ] && return
    echo "$name: ends with $rc"
    cat "$dir/word.yaml" "$dir/said"
    failed=1
}

happens() { # happens N PATTERN: so many lines of the last history match
    local n
    n=$(cat "$dir"/run/*/history.jsonl | grep -cE "$2")
    [ "$n" = "$1" ] || { echo "${dir##*/}: $n lines match $2, not $1"; failed=1; }
}

play majority 3 '' 'when: {step: 60}, fault: node-kill, on: majority'
happens 1 '"kind":"fault-fired".*"on":\["n[0-9]","n[0-9]"\]'

play racks 4 ', racks: [[n0, n2], [n1, n3]]' 'when: {step: 60}, fault: node-poweroff, on: rack 1'
happens 1 '"kind":"fault-fired".*"on":\["n1","n3"\]'

play until 3 '' 'id: away, when: {step: 60}, fault: net-partition, on: n2, until: {round: 2, step: 150}'
happens 1 '"kind":"fault-recovered","id":"away"'
happens 0 '"kind":"fault-not-fired"'

play sticky 3 '' 'id: bad, when: {step: 60}, fault: worker-kill, on: n1, sticky: node' \
    'id: off, when: {after: bad, plus: 500ms}, fault: node-kill, on: n1' \
    'when: {after: off, plus: 500ms}, fault: node-start, on: n1'
happens 2 '"kind":"fault-in-force","id":"bad".*"name":"n1/0 '

# Who coordinates, as rankrun itself tells it of the same store: it was the node that died.
told() { # told KIND [PATTERN]: the node of the last such record
    sed -n "s/.*\"kind\":\"$1\".*\"node\":\"\([^\"]*\)\".*${2-}.*/\1/p" "$dir"/run/*/history.jsonl | tail -n 1
}
tells="$BIN/rankrun status --rdzv-backend embedded --rdzv-endpoint store:29400 --rdzv-id word |
    sed -n 's/^coordinator *//p'"
more="probe: {lead: {cmd: [sh, -c, \"$(tr -s '\n ' ' ' <<<"$tells")\"], on: n0, every: 1s}}" \
    play coordinator 3 '' 'id: lost, when: {step: 500}, fault: node-kill, on: coordinator'
said=$(told store-said) died=$(told agent-exit '"signal":9')
known=$(sed '/"kind":"store-said"/,$d' "$dir"/run/*/history.jsonl |
    sed -n 's/.*"probe":"lead","ok":true,"value":"\([^"]*\)".*/\1/p' | tail -n 1)
[[ -n $said && $said = "$died" && $said = "$known" ]] ||
    { echo "coordinator: the store named '$said', rankrun '$known', and '$died' died"; failed=1; }
# Had another died, the judge would say so.
for wrong in n0 n1 n2; do
    [ "$wrong" != "$said" ] && break
done
sed "/\"kind\":\"store-said\"/s/\"node\":\"$said\"/\"node\":\"$wrong\"/" "$dir"/run/*/history.jsonl >"$dir/wrong.jsonl"
"$BIN/rankquake" judge --scenario "$dir/word.yaml" "$dir/wrong.jsonl" >"$dir/judged" 2>&1
grep -Eq "✗ fired .*struck $said on $said" "$dir/judged" || { echo 'coordinator: another one is not noticed'; cat "$dir/judged"; failed=1; }

play store 3 '' 'id: gone, when: {step: 60}, fault: node-kill, on: store' \
    'when: {after: gone, plus: 300ms}, fault: node-start, on: store' 'when: {round: 2, step: 500}, fault: worker-kill, on: rank 1'
happens 2 '"source":"kernel","kind":"store-start"'
happens 1 '"kind":"fault-in-force","id":"gone".*"what":"store","name":"store"'

play silent 3 '' 'id: gone, when: {step: 60}, fault: node-poweroff, on: store' \
    'when: {after: gone, plus: 300ms}, fault: node-start, on: store'
happens 1 '"source":"wire","kind":"fault-evidence","id":"gone"'

play program 3 '' 'id: dead, when: {step: 60}, fault: agent-kill, on: store' \
    'id: off, when: {after: dead, plus: 100ms}, fault: node-kill, on: store' \
    'when: {after: off, plus: 100ms}, fault: node-start, on: store'
happens 1 '"kind":"fault-in-force","id":"dead".*"what":"store","name":"store of store"'

play away 3 '' 'when: {step: 60}, fault: net-partition, on: store, for: 2s'
play hosted 3 ', store: {on: n1}' 'id: gone, when: {step: 60}, fault: node-kill, on: store' \
    'when: {after: gone, plus: 300ms}, fault: node-start, on: store'
happens 1 '"kind":"fault-in-force","id":"gone".*"what":"node","name":"n1"'

# A leader that is cut off believes in itself; the others have another by then, and that one dies.
if command -v etcd >/dev/null; then
    steps=2500 play leaders 2 ', store: etcd-3' 'id: cut, when: {step: 60}, fault: net-partition, on: store-leader, for: 4s' \
        'id: kill, when: {after: cut, plus: 2500ms}, fault: node-kill, on: store-leader' \
        'when: {after: kill, plus: 3s}, fault: node-start, on: store'
    happens 2 '"kind":"store-said".*"node":"store-[0-2]","term":[0-9]+'
    [ "$(grep -ho '"kind":"store-said".*"node":"store-[0-2]"' "$dir"/run/*/history.jsonl | grep -o 'store-[0-2]' | sort -u | wc -l)" = 2 ] ||
        { echo 'leaders: the same member twice'; failed=1; }
else
    echo 'no etcd on this host: store-leader was not tried'
fi

[ $failed = 1 ] || echo 'majority, racks, until, sticky, coordinator, store and store-leader do on real nodes what they say'
exit $failed
