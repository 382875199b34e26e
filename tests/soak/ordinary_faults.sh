#!/usr/bin/env bash
# What needs no root on hosts: as an ordinary user (uid 1000) on hosts that ssh reaches, each kind of fault strikes, is felt by evidence of
# the host's kernel, its disk or its helper's counters, the job comes through, and nothing is left. A row is printed for each.
# FAULTS='file-flip worker-kill': these alone.
# deadline: 1200 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
bin=$(realpath "${BIN:-build/bin}") fails=0
bed=$TMPDIR/bed
tests/clusters/ssh up "$bed" 2 >"$TMPDIR/up" 2>&1
case $? in
0) trap 'tests/clusters/ssh down "$bed"' EXIT ;;
77) cat "$TMPDIR/up"; exit 77 ;;
*) echo "no hosts: $(cat "$TMPDIR/up")"; exit 1 ;;
esac
chmod 711 "$TMPDIR" # an ordinary user is let in

rows=(
    'kill|worker-kill, on: rank 3'
    'signal|worker-signal, with: {signal: SIGTERM}, on: rank 3'
    'exit: a system call made in a process of its own|worker-exit, with: {code: 7}, on: rank 3'
    'hang|worker-hang, on: rank 3, for: 1s'
    'agent-kill|agent-kill, on: n1'
    'loud node death|node-kill, on: n1'
    'checkpoint damage|file-flip, with: {path: "{shared}/ckpt/step-*/weights.f32"}, on: n0'
    'error of a system call|disk-error, with: {op: rename, path: "{shared}/ckpt/**", times: 1}, on: node of rank 0'
    'a system call that takes longer|disk-slow, with: {op: change, path: "{shared}/ckpt/**", delay: 20ms}, on: node of rank 0, for: 2s'
    'one that hangs|disk-stuck, with: {op: rename, path: "{shared}/ckpt/**"}, on: node of rank 0, for: 2s'
    'a wall clock that jumps|clock-jump, with: {by: -1h}, on: n1'
    'partition|net-partition, with: {groups: "n0|n1"}, for: 2s'
    'silence|node-poweroff, on: n1'
)
left=0
look() { # what of a run is still on the hosts
    local host
    for host in n0 n1; do
        # shellcheck disable=SC2009
        tests/clusters/ssh in "$bed" $host ps -eo args | grep -E '^[^ ]*(rankquake-node|rankrun|rankprobe|ranktrain)' && left=1
    done
}
printf '| fault | of | felt by | nothing left |\n|---|---|---|---|\n'
for row in "${rows[@]}"; do
    name=${row%%|*} fault=${row#*|} file=$TMPDIR/struck.yaml runs=$TMPDIR/runs
    runs+=/${fault%%,*}
    [ -z "${FAULTS-}" ] || [[ " $FAULTS " == *" ${fault%%,*} "* ]] || continue
    cat >"$file" <<YAML
scenario: struck
about: A job on two hosts, as an ordinary user.
cluster: {nodes: 2}
job:
  nnodes: "1:2"
  workers_per_node: 2
  rdzv_conf: {hb: 1s, fence: 20s, hard: 21s, suspect: 23s}
  run: [ranktrain, --steps=60, --compute-ms=20, --checkpoint-every=10, --collective-timeout=20, "--checkpoint-dir={shared}/ckpt"]
timeline:
  - {id: f, when: {step: 25}, fault: $fault}
YAML
    # What is damaged is felt by who reads it: the next round.
    [[ $fault != file-* ]] || echo '  - {id: fail, when: {after: f, step: 26}, fault: worker-exit, on: rank 1}' >>"$file"
    tests/clusters/ssh in "$bed" ctl "$bin/rankquake" run "$file" --out "$runs" --provider ssh --ssh "ssh -F $bed/ssh_config" \
        --hosts worker@n0,worker@n1 >"$TMPDIR/said" 2>&1 </dev/null
    rc=$?
    [ $rc = 2 ] && only_hosts_were_late "$TMPDIR/said" && rc=0
    history=$(find "$runs" -name history.jsonl -not -path '*/control/*' 2>/dev/null)
    evidence=$(grep -m 1 '"kind":"fault-evidence","id":"f"' ${history:-/dev/null} | grep -oE '"(source|of|what|evidence)":"[^"]*"' | cut -d'"' -f4 | paste -sd' ')
    left=0
    look
    printf '| %s | `%s` | %s | %s |\n' "$name" "${fault%%,*}" "${evidence:-nothing}" "$([ $left = 0 ] && echo yes || echo no)"
    if [ $rc != 0 ] || [ -z "$evidence" ] || [ $left = 1 ]; then
        fails=$((fails + 1))
        echo "$name: exit code $rc: $(tail -n 60 "$TMPDIR/said")"
    fi
done
[ $fails = 0 ]
