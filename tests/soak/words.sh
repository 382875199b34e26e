#!/usr/bin/env bash
# Words of the timeline that take a whole cluster to come true: majority, racks, until and sticky, each on real nodes,
# judged as every run is, and its history asked for what the word says.
# deadline: 300 s
set -u
BIN=$(cd "$BIN" && pwd) || exit 1
failed=0

play() { # play NAME NODES HEAD LINES...: the cluster's other keys, and the lines of the timeline
    local name=$1 nodes=$2 head=$3 rc
    shift 3
    dir=$TMPDIR/$name
    mkdir -p "$dir"
    {
        echo "cluster: {nodes: $nodes$head}"
        echo "job: {nnodes: '1:$nodes', rdzv_conf: {profile: fast}, run: [ranktrain, --steps=900, --compute-ms=5,"
        echo "      --checkpoint-every=25, '--checkpoint-dir={shared}/ckpt']}"
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

[ $failed = 1 ] || echo 'majority, racks, until and sticky do on real nodes what they say'
exit $failed
