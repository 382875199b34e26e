#!/usr/bin/env bash
# Faults that cannot be, that contradict each other or are too many: said with line and column before anything is done, or
# where only the run shows it, the fault "did not fire" and the run is inconclusive. No fault ever lasts longer than
# limits.fault.
# Every fault with every wrong value, key, target and end is tests/harness/plan/test_bad_arguments.c.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/runs.bash

write() { # write FILE LIMITS ENTRY...
    { cat <<'END2'
cluster: {nodes: 2}
job:
  nnodes: "1:2"
  rdzv_conf: {profile: fast, hb: 300ms, fence: 4s, hard: 4.1s, suspect: 4.3s}
  run: [ranktrain, --steps=200, --compute-ms=10]
END2
      echo "limits: {total: 1m$2}"
      echo 'timeline:'
      printf '  - %s\n' "${@:3}"; } >"$dir/$1.yaml"
}
refused() { # refused WHAT TEXT LIMITS ENTRY...
    write wrong "${@:3}"
    "$BIN/rankquake" plan "$dir/wrong.yaml" >"$dir/said" 2>&1
    local rc=$?
    [ $rc = 64 ] || fail "$1: exit $rc, not 64"
    said "$1" "wrong\.yaml:[0-9]+:[0-9]+: .*$2"
}

# ---- of each fault that only namespaces have: elsewhere it is refused, with the reason and before anything is begun ----
for name in $("$BIN/rankquake" list faults --table | sed -n 's/^| .\([a-z-]*\). .* | namespaces |$/\1/p'); do
    case $name in
    clock-*) write wrong '' "{id: off, when: {step: 9}, fault: node-kill, on: n1}" "{when: {after: off}, fault: $name, on: n1}" ;;
    slurm-*-kill | slurm-drain) write wrong '' "{when: {step: 9}, fault: $name, on: n0, for: 1s}" ;;
    slurm-*) write wrong '' "{when: {step: 9}, fault: $name, on: rank 0}" ;;
    *) write wrong '' "{when: {step: 9}, fault: $name, on: n0, for: 1s}" ;;
    esac
    "$BIN/rankquake" run "$dir/wrong.yaml" --isolation processes --out "$dir/none" >"$dir/said" 2>&1
    rc=$?
    [ $rc = 4 ] || fail "$name without namespaces: exit $rc, not 4"
    said "$name without namespaces" "$name.*(there is no wire|have its uptime|ask its own name server|no scheduler)"
    [ ! -e "$dir/none" ] || fail "$name without namespaces: something was begun"
done

# ---- what cannot be, or contradicts itself ----
refused 'a node that is not there' 'there is no n7' '' '{when: {step: 9}, fault: node-kill, on: n7}'
refused 'a node that is gone by then' 'nothing is left to hit: gone' '' \
    '{id: gone, when: {step: 9}, fault: node-poweroff, on: n1}' '{when: {after: gone}, fault: node-freeze, on: n1, for: 1s}'
refused 'an end of what has none' 'does not last' '' '{when: {step: 9}, fault: worker-kill, on: rank 0, for: 1s}'
refused 'longer than may be' 'limits.fault allows 2 s' ', fault: 2s' '{when: {step: 9}, fault: worker-hang, on: rank 1, for: 3s}'
refused 'more than may be' 'one more than limits.faults allows \(1\): first lasts' ', faults: 1' \
    '{id: first, when: {step: 9}, fault: worker-hang, on: rank 1}' '{when: {after: first}, fault: worker-kill, on: rank 0}'
refused 'two clocks' 'drift \(clock-drift\) contradicts jump \(clock-jump\) in line 8, column [0-9]+, which moves the same clock and lasts to the end' '' \
    '{id: jump, when: {step: 9}, fault: clock-jump, on: n1, with: {by: 1h}}' \
    '{id: drift, when: {after: jump}, fault: clock-drift, on: n1, with: {rate: 2}, for: 1s}'
refused 'two limits' 'more \(node-cpu\) contradicts less' '' '{id: less, when: {step: 9}, fault: node-cpu, on: n1, with: {percent: 50}}' \
    '{id: more, when: {after: less, plus: 1s}, fault: node-cpu, on: n1, with: {percent: 20}}'
refused 'a cut that is there' 'two \(net-partition\) contradicts one' '' '{id: one, when: {step: 9}, fault: net-partition, on: n1}' \
    '{id: two, when: {after: one}, fault: net-partition, on: n1}'
write wrong '' '{id: one, when: {step: 9}, fault: clock-jump, on: n1, with: {by: 1h}, for: 1s}' \
    '{id: two, when: {after: one, plus: 2s}, fault: clock-jump, on: n1, with: {by: 2h}}' \
    '{id: cut, when: {after: two}, fault: net-partition, on: n1, with: {planes: data}}' \
    '{id: other, when: {after: cut}, fault: net-partition, on: n1, with: {planes: store}}'
"$BIN/rankquake" plan "$dir/wrong.yaml" >"$dir/said" 2>&1 || fail 'what does not contradict itself'
write wrong '' '{id: first, when: {step: 9}, fault: agent-hang, on: n1}' '{when: {after: first}, fault: worker-kill, on: rank 0}'
"$BIN/rankquake" plan "$dir/wrong.yaml" >"$dir/said" 2>&1 || fail 'as many as there are'
"$BIN/rankquake" plan "$dir/wrong.yaml" --max-concurrent-faults 1 >"$dir/said" 2>&1 && fail 'the option says nothing'
said 'the option' 'limits.faults allows \(1\)'

# ---- what only the run shows: one comes while the other lasts, and that is ended by its limit ----
write many ', faults: 1, fault: 2s' '{id: slow, when: {step: 20}, fault: worker-hang, on: rank 1}' \
    '{id: more, when: {after: slow, plus: 50ms}, fault: worker-kill, on: rank 0}' \
    '{id: later, when: {step: 150}, fault: worker-signal, with: {signal: SIGCONT}, on: rank 0}'
"$BIN/rankquake" plan "$dir/many.yaml" >"$dir/said" 2>&1 || fail 'plan'
said plan 'after 2 s at the latest \(limits.fault\)'
runs 'one too many' 2 "$dir/many.yaml"
said 'one too many' '1 fault was in force when its moment came, and limits.faults allows 1 at once'
recorded 'one too many' '"kind":"fault-not-fired".*"id":"more"'
recorded 'the end by its limit' '"kind":"fault-recovered".*"id":"slow"'
recorded 'when there is room again' '"kind":"fault-fired".*"id":"later"'
exit $failed
