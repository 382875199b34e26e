#!/usr/bin/env bash
# A program that tells nobody anything, struck at the n-th thing that it asks the store for (when.store): the store has got all
# those before and not that one, which waits on the wire; what does not come is said; and what lint says of wrong ones.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

export RANKRUN_STORE_TOKEN=only-for-this-test

# n0 writes five keys, one after the other, and loses its power at the third; then n1 is alone, and counts them.
cat >"$dir/puts.sh" <<'END'
ask() { # ask PATH BODY
    exec 3<>/dev/tcp/store/29400
    printf 'POST /v3/kv/%s HTTP/1.1\r\nHost: store\r\nAuthorization: Bearer %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' \
        "$1" "$STORE_TOKEN" ${#2} "$2" >&3
    cat <&3
}
case $1 in */control) exit 0 ;; esac
if [ "$WORLD_SIZE" = 1 ]; then
    found=$(ask range '{"key":"YQ==","range_end":"Yg==","count_only":true}')
    echo "$found"
    [[ $found == *'"count":"2"'* ]]
    exit
fi
[ "$(uname -n)" = n0 ] || exec sleep 60
for i in 1 2 3 4 5; do
    ask put "{\"key\":\"$(printf a$i | base64)\",\"value\":\"YQ==\"}"
done
exec sleep 60
END
job() { # job FILE WHEN FAULT
    cat >"$dir/$1.yaml" <<END
cluster: {nodes: 2}
job:
  nnodes: "1:2"
  rdzv_conf: $watchful_map
  env: {STORE_TOKEN: $RANKRUN_STORE_TOKEN}
  run: [bash, $dir/puts.sh, "{out}"]
timeline:
  - {id: dark, when: {$2}, $3}
expect: {world_sizes: [2, 1]}
limits: {total: 240s}
END
}
job third 'store: put, nth: 3' 'fault: node-poweroff, on: n0'
runs 'the third write' 0 "$dir/third.yaml"
recorded 'the third write' '"source":"wire","kind":"store-request","node":"n0","id":"dark","operation":"put","to":"store"'
recorded 'the third write' '"kind":"fault-fired","id":"dark".*"held":true'
runs 'an operation that does not come' 2 "$dir/third.yaml" --set 'job.run=[ranktrain, --steps=3]' \
    --set timeline.0.when.store=compact --set expect.world_sizes='[2]'
said 'an operation that does not come' 'only 0 of 3 times was the store asked for compact'

wrong() { # wrong WHAT CODE VERB TEXT WHEN [ARGUMENT...]
    job wrong "$5" 'fault: node-poweroff, on: n0'
    "$BIN/rankquake" "$3" "$dir/wrong.yaml" "${@:6}" >"$dir/said" 2>&1 </dev/null
    rc=$?
    [ $rc = "$2" ] || fail "$1: exit $rc, not $2"
    said "$1" "$4"
}
wrong 'an operation that there is not' 64 lint 'wrong.yaml:8:30: store must be .*, not "putt"; did you mean "put"' 'store: putt'
wrong 'two that are held' 64 lint 'wrong.yaml:8:22: when has an operation of the store and something else' 'store: put, step: 3'
wrong 'a TCPStore' 64 lint "wrong.yaml:8:22: store: put: torch's TCPStore .* is not read" 'store: put' --launcher torchrun
wrong 'a store of nobody else' 64 lint 'one node alone asks itself' 'store: put' --set cluster.nodes=1 --set job.nnodes=1 --set expect.world_sizes='[1]'
wrong 'no wire' 4 plan 'which only nodes in namespaces have' 'store: put' --set cluster.isolation=processes
wrong 'a plan' 0 plan 'when the store is asked for put, number 2 by the target' 'store: put, nth: 2'
exit $failed
