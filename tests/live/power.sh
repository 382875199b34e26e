#!/usr/bin/env bash
# The power of hosts by an operator's commands (cluster.power), on hosts of a bed whose "power" takes all of a host's namespaces and
# starts it again: a node loses it without a word to anybody and comes back with its host; what a command claims is no evidence; one that
# fails, hangs or lies is told with the host's name; and whatever happens to the harness, its hosts have their power again.
# deadline: 600 s
set -u
if [ -z "${POWER_OWN-}" ]; then # a host is one run's at a time: this script's have places of their own for their locks
    [[ $TMPDIR != /var/tmp/* ]] && unshare -m true 2>/dev/null || { echo "this host grants no mounts of one's own"; exit 77; }
    POWER_OWN=1 exec unshare -m --propagation private sh -c 'mount -t tmpfs -o mode=1777 tmpfs /var/tmp && exec "$0"' "$0"
fi
. tests/live/patience.bash
bin=${BIN:-build/bin} fails=0
fail() { echo "power: $*"; fails=$((fails + 1)); }
chmod 711 "$TMPDIR"
mkdir "$TMPDIR/shared" && chmod 1777 "$TMPDIR/shared"
bed=$TMPDIR/bed
script=$(realpath tests/clusters/ssh)

# scenario NAME OFF ON WITHIN ENTRY...: the job needs both nodes, so it waits for the one that is off.
scenario() {
    local name=$1
    cat >"$TMPDIR/$name.yaml" <<YAML
scenario: $name
about: A host loses its power.
cluster:
  nodes: 2
  provider: ssh
  hosts: [worker@n0, worker@n1]
  ssh: ssh -F $bed/ssh_config
  power: {off: $2, on: $3, within: $4}
job:
  nnodes: 2
  rdzv_conf: {hb: 1s, fence: 20s, hard: 21s, suspect: 23s}
  run: [ranktrain, --steps=40, --compute-ms=10, --checkpoint-every=10, --collective-timeout=60, "--checkpoint-dir={shared}/ckpt"]
expect: {outcome: succeeded}
limits: {stall: 5m}
timeline:
YAML
    shift 4
    printf '  - %s\n' "$@" >>"$TMPDIR/$name.yaml"
}
run() { # run NAME OPTION...
    tests/clusters/ssh in "$bed" ctl "$bin/rankquake" run "$TMPDIR/$1.yaml" --out "$TMPDIR/$1" "${@:2}" >"$TMPDIR/said" 2>&1 </dev/null
}
says() { # says RC PATTERN NAME: the run ends so
    local got
    run "$3"
    got=$?
    [ "$1$got" = 02 ] && only_hosts_were_late "$TMPDIR/said" && got=0
    [ $got = "$1" ] && grep -qF -- "$2" "$TMPDIR/said" || fail "$3: wanted $1 and '$2', got $got: $(cat "$TMPDIR/said")"
}
recorded() { # recorded NAME PATTERN
    grep -qE -- "$2" "$TMPDIR/$1"/*/history.jsonl || fail "$1: not recorded: $2"
}
is_on() { tests/clusters/ssh in "$bed" ctl ssh -F "$bed/ssh_config" "worker@$1" true || fail "$1 does not answer after $2"; }
off="[\"$script\", _cut, \"$bed\", \"{host}\"]" on="[\"$script\", _start, \"$bed\", \"{host}\"]"
cut='{id: off, when: {step: 25}, fault: node-poweroff, on: n1}' back='{id: on, when: {after: off}, fault: node-start, on: n1}'

# What makes no sense is refused before any host is asked.
lint() { # lint PATTERN OFF ON
    scenario wrong "$2" "$3" 60s "$cut"
    "$bin/rankquake" lint "$TMPDIR/wrong.yaml" >"$TMPDIR/said" 2>&1
    [ $? = 64 ] && grep -qF -- "$1" "$TMPDIR/said" || fail "$1: $(cat "$TMPDIR/said")"
}
lint 'off: this command names no host: put {host} or {node}' '[power, off]' "$on"
lint 'on: its command is empty' "$off" '[]'
lint 'there is no placeholder {hots} here' '[power, "{hots}", "{host}"]' "$on"
scenario wrong "$off" "$on" 60s "$cut"
sed -i "s/, on: .*, within/, within/" "$TMPDIR/wrong.yaml"
"$bin/rankquake" lint "$TMPDIR/wrong.yaml" >"$TMPDIR/said" 2>&1
[ $? = 64 ] && grep -q 'on' "$TMPDIR/said" || fail "no command to give power back: $(cat "$TMPDIR/said")"
scenario wrong "$off" "$on" 60s "$cut"
sed -i '/provider:/d; /hosts:/d; /ssh:/d' "$TMPDIR/wrong.yaml"
"$bin/rankquake" lint "$TMPDIR/wrong.yaml" >"$TMPDIR/said" 2>&1
[ $? = 64 ] && grep -q 'power is for hosts' "$TMPDIR/said" || fail "power without hosts: $(cat "$TMPDIR/said")"

# Of hosts that are one, or this one, nobody takes the power.
node="$(realpath "$bin/rankquake-node") --dead-man 33$$ms"
refused() { # refused PATTERN HOST...
    scenario own "$off" "$on" 60s "$cut"
    sed -i "s|provider: ssh|provider: exec|; s|hosts: .*|hosts: [\"$2\", \"$3\"]|; /ssh:/d" "$TMPDIR/own.yaml"
    "$bin/rankquake" run "$TMPDIR/own.yaml" --out "$TMPDIR/own" >"$TMPDIR/said" 2>&1
    [ $? = 4 ] && grep -qF -- "$1" "$TMPDIR/said" || fail "$1: $(cat "$TMPDIR/said")"
}
refused 'is the machine that rankquake runs on' "$node" "$node # 2"
touch "$TMPDIR/net"
if unshare --net="$TMPDIR/net" ip link set lo up 2>/dev/null; then
    refused 'are one host, and cluster.power would take the power of both' "nsenter --net=$TMPDIR/net $node" "nsenter --net=$TMPDIR/net $node # 2"
    umount "$TMPDIR/net"
fi

tests/clusters/ssh up "$bed" 2 >"$TMPDIR/up" 2>&1
case $? in
0) trap 'tests/clusters/ssh down "$bed"' EXIT ;;
77) cat "$TMPDIR/up"; [ $fails = 0 ] || exit 1; exit 77 ;;
*) fail "no hosts: $(cat "$TMPDIR/up")"; exit 1 ;;
esac

# A host that loses its power says nothing any more: ssh still waits for it. It comes back as another one.
scenario lost "$off" "$on" 180s "$cut" "$back"
says 0 'off: node-poweroff on n1' lost
recorded lost '"kind":"power","node":"n1","host":"worker@n1","do":"off","took_ns":[0-9]+}'
recorded lost '"kind":"power","node":"n1","host":"worker@n1","do":"on","took_ns":[0-9]+}'
grep -q 'dropped' "$TMPDIR"/lost/*/history.jsonl && fail "frames were counted that nobody can count"
grep -q "^\\$ .* _cut $bed n1$" "$TMPDIR"/lost/*/logs/n1/power.log || fail "what was run is not kept: $(cat "$TMPDIR"/lost/*/logs/n1/power.log)"
is_on n1 'a node-start'

# What stays off for the job is on again after the run.
scenario stays "$off" "$on" 180s "$cut"
sed -i 's/nnodes: 2/nnodes: "1:2"/' "$TMPDIR/stays.yaml"
says 0 'off: node-poweroff on n1' stays
recorded stays '"kind":"power","node":"n1","host":"worker@n1","do":"on","took_ns":[0-9]+}'
is_on n1 'the end of a run'

# With n0 the store would go.
scenario beside "$off" "$on" 60s '{id: off, when: {step: 25}, fault: node-poweroff, on: n0}'
says 4 'the store is on worker@n0 as well' beside

# Commands that fail, hang and lie.
scenario fails '[sh, -c, "echo no such chassis: {host} >&2; exit 3"]' "$on" 60s "$cut" "$back"
says 2 'n1 (worker@n1): cluster.power.off has failed: exit code 3, "no such chassis: n1"' fails
scenario missing '[no-such-program, "{host}"]' "$on" 60s "$cut"
says 2 'n1 (worker@n1): cluster.power.off: execute no-such-program' missing
scenario hangs '[sh, -c, "echo asking {host}; sleep 1000 & wait"]' "$on" 2s "$cut"
says 2 'cluster.power.off has not ended after 2 s and was killed; it had said "asking n1"' hangs
scenario lies '[echo, "{host} is off"]' '[echo, "{host} is on"]' 7s "$cut"
says 2 'the helper there still answers 7 s after: the host has kept its power' lies
scenario link '[ip, link, set, "v{host}", nomaster]' '[ip, link, set, "v{host}", master, br0, up]' 60s "$cut" "$back"
says 3 'it has never been without power' link
# Its helper has heard nothing, and keeps the host until its dead-man does: nobody waits for that here.
tests/clusters/ssh cut "$bed" n1 && tests/clusters/ssh start "$bed" n1 || fail 'n1 cannot be started again'
scenario back "$off" '[sh, -c, "echo {host} has no breaker; exit 9"]' 60s "$cut" "$back"
says 3 'n1 (worker@n1): cluster.power.on has failed: exit code 9, "n1 has no breaker"' back
tests/clusters/ssh start "$bed" n1 || fail "n1 is on, though nobody could switch it on"

# A harness that is killed while a host is off leaves it on.
scenario killed "$off" "$on" 180s "$cut"
sed -i 's/nnodes: 2/nnodes: "1:2"/; s|run: .*|run: [sh, -c, "case {out} in */control) n=40 ;; *) n=100000 ;; esac; exec ranktrain --steps=$n --compute-ms=10 --collective-timeout=60"]|' "$TMPDIR/killed.yaml"
killed=''
exec 5< <(tests/clusters/ssh in "$bed" ctl "$bin/rankquake" run "$TMPDIR/killed.yaml" --out "$TMPDIR/killed" 2>&1 </dev/null)
while read -r -t 180 -u 5 line; do
    echo "$line" >>"$TMPDIR/killed.said"
    [[ -z $killed && $line == *'its power is gone'* ]] || continue
    killed=$(pgrep -f "^$bin/rankquake run .* --out $TMPDIR/killed\$")
    kill -KILL "$killed"
done
[ -n "$killed" ] || fail "a harness that is killed: $(tail -n 20 "$TMPDIR/killed.said")"
is_on n1 'the death of the harness'
[ $fails = 0 ]
