#!/usr/bin/env bash
# Hosts that hold their node to a limit, by a control group of the helper's there: what the kernel has counted in it shows that it was
# felt, it is gone when the fault is undone, and when the helper is killed its keeper takes it away. Who may make none has the scenario
# skipped, with the host and what it lacks.
# alone: the kernel kills here for want of memory, and a run beside it cannot tell whom
# deadline: 300 s
set -u
# What moves clocks has no part in a program that is instrumented: its runtime wants to be the first.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
. tests/live/patience.bash
bin=${BIN:-build/bin} fails=0
fail() { echo "remote_limits: $*"; fails=$((fails + 1)); }
chmod 711 "$TMPDIR"
. tests/live/bed.bash
bed_up ssh 2
tests/clusters/ssh in "$bed" ctl "$bin/rankquake" doctor --provider ssh --hosts n1 --ssh "ssh -F $bed/ssh_config" >"$TMPDIR/said" 2>&1
for limit in cpu memory pids; do
    grep -q "can: .*$limit-limits" "$TMPDIR/said" || { echo "root's host has no control groups of its own: $(cat "$TMPDIR/said")"; exit 77; }
done

run() { # run NAME HOSTS
    tests/clusters/ssh in "$bed" ctl env PATH="$(realpath "$bin"):$PATH" "$bin/rankquake" run "$TMPDIR/$1.yaml" --out "$TMPDIR/$1" \
        --provider ssh --hosts "$2" --ssh "ssh -F $bed/ssh_config" 2>&1 </dev/null
}
# Of helpers of n1: their names begin with its namespace of processes.
space=$(tests/clusters/ssh in "$bed" n1 stat -Lc %i /proc/self/ns/pid)
groups() { find /sys/fs/cgroup -name "rankquake-node-$space.*" 2>/dev/null; }
[ -z "$(groups)" ] || fail "what was tried out is left: $(groups)"

# On n1 something wants processes and memory beside the worker, as soon as there are too few.
cat >"$TMPDIR/poor.yaml" <<'YAML'
scenario: poor
about: A host gives its node too little of one thing after another.
cluster: {nodes: 2}
job:
  nnodes: 2
  max_restarts: 3
  rdzv_conf: {hb: 1s, fence: 20s, hard: 21s, suspect: 23s}
  run:
    - bash
    - -c
    - |
      train() { ranktrain --steps=120 --compute-ms=10 --collective-timeout=60; }
      case {out}:{node} in */control:* | *:n0) train; exit ;; esac
      came() { grep -q -m 1 "fault-in-force.*\"$1\"" < <(tail -n +1 -F {out}/history.jsonl 2>/dev/null); }
      (came cpu; for i in {1..50000}; do :; done; echo no processor) &
      (came pids; for i in 1 2 3 4 5 6 7 8; do sleep 0.2 & done; wait) &
      (came memory; echo 1000 >/proc/self/oom_score_adj; head -c 300m /dev/zero | tail -c 300m >/dev/null; echo no memory) &
      train
      code=$?
      wait
      exit $code
timeline:
  - {id: cpu, when: {step: 10}, fault: node-cpu, with: {percent: 10}, on: n1}
  - {id: busy, when: {after: cpu, log: '/no processor/'}, heal: cpu}
  - {id: pids, when: {after: busy}, fault: node-pids, on: n1}
  - {id: more, when: {after: pids, log: '/fork: retry/'}, heal: pids}
  - {id: memory, when: {after: more}, fault: node-memory, with: {more: 64}, on: n1}
  - {id: fed, when: {after: memory, log: '/no memory/'}, heal: memory}
expect: {outcome: succeeded, restarts: 0}
limits: {total: 4m, stall: 2m}
YAML
run poor n0,n1 >"$TMPDIR/said"
rc=$?
[ $rc = 0 ] || { [ $rc = 2 ] && only_hosts_were_late "$TMPDIR/said"; } || fail "a poor host: $rc, $(tail -n 40 "$TMPDIR/said"; whats_wrong "$TMPDIR/said")"
for id in cpu pids memory; do
    grep -qE "\"source\":\"kernel\",\"kind\":\"fault-evidence\",\"id\":\"$id\".*\"by\":\"a control group\",\"count\":[1-9]" "$TMPDIR"/poor/*/history.jsonl ||
        fail "a poor host: the kernel has not counted $id: $(grep -h fault- "$TMPDIR"/poor/*/history.jsonl)"
    grep -q "\"kind\":\"fault-recovered\",\"id\":\"$id\",\"n\":1" "$TMPDIR"/poor/*/history.jsonl || fail "a poor host: $id was not undone"
done
[ -z "$(groups)" ] || fail "what was undone is left: $(groups)"

# More than anybody wants is not felt: that a limit was set is no evidence.
cat >"$TMPDIR/rich.yaml" <<'YAML'
scenario: rich
about: A host gives its node more than it wants.
cluster: {nodes: 2}
job:
  nnodes: 2
  rdzv_conf: {hb: 1s, fence: 20s, hard: 21s, suspect: 23s}
  run: [ranktrain, --steps=40, --compute-ms=5, --collective-timeout=60]
timeline:
  - {id: cpu, when: {step: 5}, fault: node-cpu, with: {percent: 100000}, on: n1}
  - {id: pids, when: {step: 6}, fault: node-pids, with: {more: 1000}, on: n1}
  - {id: memory, when: {step: 7}, fault: node-memory, with: {more: 100000}, on: n1}
limits: {total: 4m, stall: 2m}
YAML
run rich n0,n1 >"$TMPDIR/said"
rc=$?
[ $rc = 2 ] || fail "a rich host: $rc, $(tail -n 40 "$TMPDIR/said"; whats_wrong "$TMPDIR/said")"
for id in cpu pids memory; do grep -q "\"kind\":\"fault-unfelt\",\"id\":\"$id\"" "$TMPDIR"/rich/*/history.jsonl || fail "a rich host: $id counts as felt"; done
[ -z "$(groups)" ] || fail "what the end of a run undoes is left: $(groups)"

# A node of root's that is switched on as if it had been suspended: its programs have that uptime, and the rest of its host has not.
cat >"$TMPDIR/slept.yaml" <<'YAML'
scenario: slept
about: A host joins that was suspended for hours.
cluster: {nodes: 2, start: 1}
job:
  nnodes: "1:2"
  rdzv_conf: {last_call_timeout: 1s, hb: 1s, fence: 20s, hard: 21s, suspect: 23s}
  run: [sh, -c, "echo step 1; case {out} in */control) exit ;; esac; [ $WORLD_SIZE = 2 ] || exec sleep 1000; cat /proc/uptime"]
observe: {step: '^step ([0-9]+)'}
timeline:
  - {id: slept, when: {step: 1}, fault: clock-boot, with: {asleep: 8h}, on: n1}
limits: {total: 4m, stall: 2m}
YAML
run slept n0,n1 >"$TMPDIR/said"
rc=$?
[ $rc = 0 ] || { [ $rc = 2 ] && only_hosts_were_late "$TMPDIR/said"; } || fail "a host that slept: $rc, $(tail -n 40 "$TMPDIR/said"; whats_wrong "$TMPDIR/said")"
grep -q '"source":"kernel","kind":"fault-evidence","id":"slept".*"monotonic_ns":0,"boottime_ns":28800000000000' "$TMPDIR"/slept/*/history.jsonl ||
    fail "a host that slept: nothing shows it: $(grep -h fault- "$TMPDIR"/slept/*/history.jsonl)"
on_for() { sed -n 's/^\([0-9]*\)\.[0-9]* [0-9.]*$/\1/p' "$TMPDIR"/slept/*/logs/"$1"/rank-*.log; }
[ $(($(on_for n1) - $(on_for n0))) -gt 28000 ] || fail "a host that slept: n0 is on for $(on_for n0) s, and n1 for $(on_for n1) s"

# As an ordinary user there is no group to be had, and no uptime, and that is said.
run slept worker@n0,worker@n1 >"$TMPDIR/said"
grep -q '(clock-boot) .*needs a time namespace, which worker@n0 has not: that takes root there' "$TMPDIR/said" || fail "an ordinary user: $(cat "$TMPDIR/said")"
run rich worker@n0,worker@n1 >"$TMPDIR/said"
grep -q '(node-cpu) .*needs a control group with the controller cpu, which worker@n0 has not' "$TMPDIR/said" || fail "an ordinary user: $(cat "$TMPDIR/said")"

# Whoever is lost, limit and clock are gone: a helper that is killed cannot undo it, its keeper does; one whose harness is killed, or is
# not heard any more, undoes it.
cat >"$TMPDIR/lost.yaml" <<'YAML'
scenario: lost
about: Somebody dies while a node is held to a limit.
cluster: {nodes: 2}
job:
  nnodes: 2
  rdzv_conf: {hb: 1s, fence: 20s, hard: 21s, suspect: 23s}
  run: [sh, -c, "case {out} in */control) n=40 ;; *) n=100000 ;; esac; exec ranktrain --steps=$n --compute-ms=10 --collective-timeout=60"]
timeline:
  - {id: cpu, when: {step: 10}, fault: node-cpu, with: {percent: 50}, on: n1}
  - {id: memory, when: {after: cpu}, fault: node-memory, with: {more: 100000}, on: n1}
  - {id: wall, when: {after: memory}, fault: clock-jump, on: n1}
limits: {total: 4m, stall: 2m}
YAML
there() { tests/clusters/ssh in "$bed" "$@"; }
pages() { there n1 find /var/tmp/rankquake-0 -name '*.clock.*'; }
lose() { # lose WHO: while both limits are in force, and the clock is wrong
    local keeper harness way
    [ "$(pages | wc -l)" = 1 ] || fail "$1: its clock has no page: $(pages)"
    [ "$(groups | grep -c -e '-cpu$' -e '-memory$')" = 2 ] || fail "$1: it is held to no limit: $(groups)"
    keeper=$(there n1 pgrep -o -f rankquake-node)
    harness=$(there ctl pgrep -o -f 'rankquake run')
    way=$(there ctl pgrep -P "$harness" -f 'ssh .* n1 ')
    case $1 in
    helper) there n1 kill -KILL "$(there n1 pgrep -P "$keeper" -f rankquake-node)" ;;
    harness) there ctl kill -KILL "$harness" ;;
    silence) there ctl kill -STOP "$way" ;;
    esac
    there n1 timeout 90 tail --pid="$keeper" -f /dev/null || fail "$1: what ran on the host does not end"
    [ -z "$(groups)" ] || fail "$1: a limit is left: $(groups)"
    [ -z "$(pages)" ] || fail "$1: the page of a clock is left: $(pages)"
    [ "$1" != silence ] || there ctl kill -CONT "$way"
}
for who in helper harness silence; do
    lost='' rc=none
    rm -rf "$TMPDIR/lost" "$TMPDIR/lost.said"
    exec 5< <(run lost n0,n1; echo "rc $?")
    while read -r -t 180 -u 5 line; do
        echo "$line" >>"$TMPDIR/lost.said"
        case $line in
        *'wall: clock-jump'*) [ -n "$lost" ] || lose $who; lost=1 ;;
        'rc '*) rc=${line#rc } ;;
        esac
    done
    [ -n "$lost" ] || fail "$who: $rc, $(tail -n 20 "$TMPDIR/lost.said")"
    [ $who = harness ] || { [ "$rc" = 3 ] && grep -q 'n1 (n1): it was lost' "$TMPDIR/lost.said"; } || fail "$who: $rc, $(tail -n 20 "$TMPDIR/lost.said")"
done
[ $fails = 0 ]
