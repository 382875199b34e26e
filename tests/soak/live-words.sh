#!/usr/bin/env bash
# Every simulated fault for which live.yaml has words, on real nodes: it happens, leaves evidence, and a right
# rankrun does what is expected there. KINDS="name ..." tries only these.
# deadline: 1200 s
set -u
BIN=$(cd "$BIN" && pwd) || exit 1
OUT=$(cd "$OUT" && pwd) || exit 1
failed=0
played=0

# One entry of a timeline for each, for three agents of which one is enough; the one of agent-start has more.
lines=(
    'agent-kill, on: n1'
    'agent-kill, on: n1, back: 500ms'
    'agent-leave, on: n1, back: 500ms'
    'agent-leave, on: n0'
    'flapping, on: n1, for: 2.400s'
    'leave-storm, on: n2'
    'leave-storm, on: n2, back: 1s'
    'lost-together, on: n1, back: 1s'
    'node-cut, on: n1, for: 500ms'
    'node-cut, on: n2, for: 1.500s'
    'node-kill, on: n2, back: 700ms'
    'node-poweroff, on: n1, back: 1s'
    'rack-cut, on: n1, for: 500ms'
    'rack-poweroff, on: n1, back: 1s'
    'store-away, for: 400ms'
    'store-away, for: 1.500s'
    'store-leader, for: 500ms'
    'store-restart, for: 500ms'
    'worker-fail, on: n1'
    'join-storm}
  - {at: 100ms, fault: agent-start, on: n1}
  - {at: 100ms, fault: agent-start, on: n2'
    'join-trickle}
  - {at: 100ms, fault: agent-start, on: n1}
  - {at: 100ms, fault: agent-start, on: n2'
    'agent-start, on: n2}
  - {at: 2.500s, fault: agent-leave, on: n0'
)

play() { # play LINE
    local dir=$TMPDIR/$played rc
    mkdir -p "$dir"
    cat >"$dir/schedule.yaml" <<EOF
simulation: ${1%%[,\}]*}
agents: 3
nodes: "1:3"
clocks: even
lifeline: true
trouble: 4s
timeline:
  - {at: 2s, fault: $1}
EOF
    "$OUT/tests/harness/sim/spawn_live" "$dir/schedule.yaml" >"$dir/live.yaml" || exit 1
    (cd "$dir" && "$BIN/rankquake" run live.yaml --out "$dir/run") >"$dir/said" 2>&1
    rc=$?
    [ $rc = 4 ] && tail -n 1 "$dir/said" && exit 77
    played=$((played + 1))
    if [ $rc != 0 ]; then
        echo "$1: ends with $rc"
        cat "$dir/live.yaml" "$dir/said"
        failed=1
    fi
    rm -rf "$dir"
}

for line in "${lines[@]}"; do
    [[ -z ${KINDS-} || " $KINDS " == *" ${line%%[,\}]*} "* ]] && play "$line"
done
[ $failed = 1 ] || echo "$played schedules of every kind that has words were played live: they pass"
exit $failed
