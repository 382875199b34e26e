#!/usr/bin/env bash
# Scenarios on hosts of their own: by a command each on this machine, and by ssh as an ordinary user. Faults strike held workers at
# an exact step; what cannot be had is skipped with the host's name; what keeps a host from being used is told with it; and nothing
# is left on any host, also when it is lost in mid-run.
# alone: helpers that wait for a processor stamp late, and checks are open then
# deadline: 600 s
set -u
# A host is one run's at a time: that of this script has a place of its own for its lock.
if [ -z "${REMOTE_OWN-}" ]; then
    [[ $TMPDIR != /var/tmp/* ]] && unshare -m true 2>/dev/null || { echo "this host grants no mounts of one's own"; exit 77; }
    REMOTE_OWN=1 exec unshare -m --propagation private sh -c 'mount -t tmpfs -o mode=1777 tmpfs /var/tmp && exec "$0"' "$0"
fi
# What moves clocks has no part in a program that is instrumented: its runtime wants to be the first.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
. tests/live/patience.bash
bin=${BIN:-build/bin} fails=0
fail() { echo "remote: $*"; fails=$((fails + 1)); }
node="$(realpath "$bin/rankquake-node") --dead-man 31$$ms" # the words tell it from that of another test
chmod 711 "$TMPDIR" # an ordinary user of a host is let in, and reads the scenario's run directory

# scenario NAME HOSTS ENTRY...: a file of this name, the cluster with these members, and a timeline of these entries.
scenario() {
    local name=$1 cluster=$2
    shift 2
    cat >"$TMPDIR/$name.yaml" <<YAML
scenario: $name
about: A job on two hosts.
cluster: {nodes: 2$cluster}
job:
  nnodes: "1:2"
  workers_per_node: 2
  rdzv_conf: {hb: 1s, fence: 20s, hard: 21s, suspect: 23s}
  run: [ranktrain, --steps=40, --compute-ms=10, --checkpoint-every=10, --collective-timeout=60, "--checkpoint-dir={shared}/ckpt"]
YAML
    [ $# = 0 ] || { echo "timeline:" && printf '  - %s\n' "$@"; } >>"$TMPDIR/$name.yaml"
}
# says RC PATTERN COMMAND...
says() {
    local rc=$1 pattern=$2 got
    shift 2
    "$@" >"$TMPDIR/said" 2>&1 </dev/null
    got=$?
    [ "$rc$got" = 02 ] && only_hosts_were_late "$TMPDIR/said" && got=0
    [ $got = "$rc" ] && grep -qF -- "$pattern" "$TMPDIR/said" || fail "$*: wanted $rc and '$pattern', got $got: $(tail -n 60 "$TMPDIR/said"; whats_wrong "$TMPDIR/said")"
}
# A fault came at the step that it was asked for, while its target was held, and was felt.
felt_at() { # felt_at STEP FAULT
    local history
    history=$(find "$TMPDIR/runs" -path "*$2-*" -name history.jsonl -not -path '*/control/*')
    grep -q "\"kind\":\"fault-fired\".*\"step\":$1,.*\"held\":true" $history || fail "$2 did not come at step $1 with its target held"
    grep -q '"kind":"fault-evidence"' $history || fail "$2 was not felt"
}

# What makes no sense is refused before any host is asked, and a file's own hosts only where somebody wants it.
scenario calm ''
run() { "$bin/rankquake" run "$@" --out "$TMPDIR/runs"; }
says 64 'there are exec, slurm and ssh' run "$TMPDIR/calm.yaml" --provider fax --hosts a
says 64 'no name of a host' run "$TMPDIR/calm.yaml" --provider ssh --hosts 'a,-oProxyCommand=x'
says 64 'leave --jobs out' run "$TMPDIR/calm.yaml" --provider ssh --hosts a,b --jobs 2
scenario hostless ', provider: ssh'
says 64 'provider: ssh needs hosts' run "$TMPDIR/hostless.yaml"
scenario wayless ', hosts: [a, b]'
says 64 'how are they reached' run "$TMPDIR/wayless.yaml"
scenario option ', provider: ssh, hosts: ["-oProxyCommand=x", b]'
says 64 'no name of a host' run "$TMPDIR/option.yaml"
scenario named ", provider: exec, hosts: [\"touch $TMPDIR/touched\", b]"
says 4 'its hosts were not asked' "$bin/rankquake" plan "$TMPDIR/named.yaml"
[ ! -e "$TMPDIR/touched" ] || fail "plan has started a command that a file names"
scenario few ", provider: exec, hosts: [\"$node\"]"
says 4 'it has 2 nodes, and there is 1 host' run "$TMPDIR/few.yaml"
scenario apart ", provider: exec, hosts: [\"$node\", \"$node\"], isolation: namespaces"
says 4 'cluster.isolation is for nodes on this machine' run "$TMPDIR/apart.yaml"

# By a command each.
hosts=", provider: exec, hosts: [\"$node # a\", \"$node # b\"]"
scenario limited "$hosts" '{id: f, when: {step: 25}, fault: net-delay, with: {groups: "n0|n1", delay: 50ms}, for: 1s}'
says 4 "which $node # a has not" run "$TMPDIR/limited.yaml"
scenario worker-kill "$hosts" '{id: f, when: {step: 25}, fault: worker-kill, on: rank 3}'
says 0 'f: worker-kill on n' run "$TMPDIR/worker-kill.yaml"
[ "$(grep -c '^on this host, to reach the host of n0' "$TMPDIR/said")" = 1 ] || fail "how a file's hosts are reached: $(cat "$TMPDIR/said")"
felt_at 25 worker-kill
scenario agent-hang "$hosts" '{id: f, when: {step: 25}, fault: agent-hang, on: n1, for: 1s}'
says 0 'f: agent-hang on agent of n1' run "$TMPDIR/agent-hang.yaml"
felt_at 25 agent-hang
# Another job on a host is told of, before: on one that has no processes but these, as other tests have jobs, too, and eight are told at most.
if unshare -pf --mount-proc true 2>/dev/null; then
    cp "$(command -v sleep)" "$TMPDIR/rankrun"
    cat >"$TMPDIR/busy" <<SH
#!/bin/sh
"$TMPDIR/rankrun" 1000 >/dev/null 2>&1 </dev/null &
until [ "\$(cat /proc/\$!/comm)" = rankrun ]; do :; done
exec $node
SH
    chmod 755 "$TMPDIR/busy"
    printf '%s\n' "$node # a" "unshare -pf --mount-proc $TMPDIR/busy" >"$TMPDIR/hostfile"
    says 0 "unshare -pf --mount-proc $TMPDIR/busy has process 2 of uid $(id -u)" "$bin/rankquake" plan "$TMPDIR/worker-kill.yaml" --provider exec --hostfile "$TMPDIR/hostfile"
else
    echo "remote: no processes of one's own here, so no host has another job"
fi

# A call waits on its host: of what was asked for only what lay before it has been done.
scenario saved "$hosts" '{id: f, when: {file: "step-*", op: rename, nth: 2}, fault: worker-kill, on: rank 0}'
says 0 'f: worker-kill on n' run "$TMPDIR/saved.yaml"
grep -q '"kind":"file-call".*"op":"rename".*/step-00000020"' "$TMPDIR"/runs/saved-*/history.jsonl &&
    grep -q '"kind":"fault-fired".*"held":true' "$TMPDIR"/runs/saved-*/history.jsonl || fail "a file on a host"
scenario synced "$hosts" '{id: f, when: {syscall: fsync, nth: 3}, fault: worker-kill, on: rank 0}'
cat >"$TMPDIR/syncs.sh" <<'SH'
at=$1/$TORCHELASTIC_RESTART_COUNT.$RANK
for i in 1 2 3 4; do
    echo begin >>"$at.begun"
    sync "$at.begun"
    echo end >>"$at.ended"
done
case $2 in */control) exit 0 ;; esac
[ "$TORCHELASTIC_RESTART_COUNT" != 0 ] || exec sleep 1000 # until rank 0 has been struck
[ "$(cat "$1/0.0.begun" | wc -l) $(cat "$1/0.0.ended" | wc -l)" = "3 2" ]
SH
sed -i "s#^  run: .*#  run: [sh, $TMPDIR/syncs.sh, '{shared}', '{out}']#" "$TMPDIR/synced.yaml"
sed -i 's/nnodes: .*/nnodes: 2/' "$TMPDIR/synced.yaml" # a round of one host alone would write the same files
says 0 'f: worker-kill on n' run "$TMPDIR/synced.yaml"
grep -q '"kind":"given","node":"n[01]","pid":' "$TMPDIR"/runs/synced-*/history.jsonl || fail "nobody says what workers of hosts were given"
grep -q '+ given  *[0-9]* workers had' "$TMPDIR/said" || fail "what workers of hosts were given is not judged: $(grep given "$TMPDIR/said")"

# A job that hangs leaves what its processes did on each host.
scenario hangs "$hosts"
sed -i "s#^  run: .*#  run: [sh, -c, 'echo step 1; case {out} in */control) ;; *) exec sleep 1000 ;; esac']#" "$TMPDIR/hangs.yaml"
printf '%s\n' "observe: {step: 'step ([0-9]+)'}" 'limits: {stall: 2s}' >>"$TMPDIR/hangs.yaml"
says 1 'limits.stall has passed' run "$TMPDIR/hangs.yaml"
for host in n0 n1; do
    cat "$TMPDIR"/runs/hangs-*/hang/$host/rank-[0-3].txt >"$TMPDIR/dump"
    [ "$(grep -c '^thread [0-9]* sleep, S (sleeping), waits in [a-z_]*nanosleep' "$TMPDIR/dump")" = 2 ] || fail "hang/$host: $(cat "$TMPDIR/dump")"
    grep -q '^step 1' "$TMPDIR"/runs/hangs-*/hang/$host/last-lines.txt && ls "$TMPDIR"/runs/hangs-*/hang/$host/*-rankrun.txt >/dev/null ||
        fail "hang/$host lacks lines or the agent: $(ls "$TMPDIR"/runs/hangs-*/hang/$host)"
done
pgrep -f "^$node" >"$TMPDIR/left" && fail "left on this machine: $(cat "$TMPDIR/left")"

# A host that is taken away in the moment in which the run ends by itself is lost all the same: no helper has said that all is undone.
cat >"$TMPDIR/reach" <<END
#!/bin/bash
exec 3> >(exec $node > >(exec cat)) # who shares its end with a helper would find it not waiting
cat >&3
pkill -"\$1" -P \$!
wait \$!
exit 7
END
chmod 755 "$TMPDIR/reach"
for signal in KILL TERM; do
    scenario "taken-$signal" ", provider: exec, hosts: [\"$TMPDIR/reach $signal # a\", \"$node # b\"]"
    says 3 "it was lost as the run ended: exit code 7" run "$TMPDIR/taken-$signal.yaml"
    grep -qE '(n0|store) \(' "$TMPDIR/said" || fail "which host was lost: $(cat "$TMPDIR/said")"
done

# By ssh, as an ordinary user.
bed=$TMPDIR/bed
tests/clusters/ssh up "$bed" 2 >"$TMPDIR/up" 2>&1
case $? in
0) trap 'tests/clusters/ssh down "$bed"' EXIT ;;
77) cat "$TMPDIR/up"; [ $fails = 0 ]; exit ;;
*) fail "no hosts: $(cat "$TMPDIR/up")"; exit 1 ;;
esac
mkdir -p "$TMPDIR/shared" && chmod 1777 "$TMPDIR/shared"
by_ssh() { # by_ssh FILE OPTION...
    tests/clusters/ssh in "$bed" ctl "$bin/rankquake" run --provider ssh --ssh "ssh -F $bed/ssh_config" --hosts worker@n0,worker@n1 "$@"
}
left_on() { # left_on HOST: what of a run is still there
    # shellcheck disable=SC2009
    tests/clusters/ssh in "$bed" "$1" ps -eo args | grep -E '^[^ ]*(rankquake-node|rankrun|rankprobe|ranktrain)' && fail "left on $1"
}
scenario node-kill '' '{id: f, when: {step: 25}, fault: node-kill, on: n1}'
says 0 'f: node-kill on n1' by_ssh "$TMPDIR/node-kill.yaml" --out "$TMPDIR/runs"
grep -q '^on this host, to reach' "$TMPDIR/said" && fail "who has typed the hosts is told of them: $(cat "$TMPDIR/said")"
felt_at 25 node-kill
left_on n0
left_on n1
scenario worker-signal '' '{id: f, when: {step: 25}, fault: worker-signal, with: {signal: SIGTERM}, on: rank 3}'
says 0 'f: worker-signal on n' by_ssh "$TMPDIR/worker-signal.yaml" --out "$TMPDIR/runs"
felt_at 25 worker-signal

# The clock of a host's job is wrong and right again. What its programs were told is the evidence: of one that does not take along what
# moves its clock nothing shows that it was set.
scenario clock '' '{id: back, when: {step: 1}, fault: clock-jump, with: {by: -1h}, on: n0}' '{id: right, when: {after: back, step: 2}, heal: back}' \
    '{id: fast, when: {after: right, step: 3}, fault: clock-drift, with: {rate: 2}, on: n0}' '{id: sound, when: {after: fast, step: 4}, heal: fast}' \
    '{id: deaf, when: {after: sound, step: 5}, fault: clock-jump, with: {by: +1h}, on: n0}' '{id: over, when: {after: deaf, step: 6}, heal: deaf}'
cat >"$TMPDIR/tells.sh" <<'SH'
came() { case $1 in */control) ;; *) grep -q -m 1 "\"$2\",\"id\":\"$3\"" < <(tail -n +1 -F "$1/history.jsonl" 2>/dev/null) ;; esac; }
tell() { echo "told $1 $(date +%s)"; }
case $2 in
with)
    tell before; echo step 1; came "$1" fault-in-force back; tell back; echo step 2; came "$1" fault-recovered back; tell right; echo step 3
    came "$1" fault-in-force fast; tell fast; sleep 0.1; tell fast; echo step 4; came "$1" fault-recovered fast
    exec env -u LD_PRELOAD bash "$0" "$1" without
    ;;
without) echo step 5; came "$1" fault-in-force deaf; tell deaf; echo step 6; came "$1" fault-recovered deaf; tell right ;;
esac
SH
sed -i "s#^  run: .*#  run: [bash, $TMPDIR/tells.sh, '{out}', with]#; s/workers_per_node: .*/workers_per_node: 1/; s/nnodes: .*/nnodes: 1/; s/nodes: 2/nodes: 1/" "$TMPDIR/clock.yaml"
echo "observe: {step: '^step ([0-9]+)'}" >>"$TMPDIR/clock.yaml"
says 2 'they did not ask the C library' by_ssh "$TMPDIR/clock.yaml" --out "$TMPDIR/runs"
grep -E '^  [?] ' "$TMPDIR/said" | grep -vE '^  [?] fired|too close to tell' && fail "a clock: more is open: $(cat "$TMPDIR/said")"
for id in back fast; do
    grep -q "\"source\":\"probe\",\"kind\":\"fault-evidence\",\"id\":\"$id\".*\"program\":\"date\"" "$TMPDIR"/runs/clock-*/history.jsonl || fail "a clock: $id was not felt"
done
grep -q '"kind":"fault-unfelt","id":"deaf"' "$TMPDIR"/runs/clock-*/history.jsonl || fail "a clock that nobody was told of counts as felt"
told=$(awk '/^told before/ { now = $3 } /^told/ { printf "%s %.0f\n", $2, ($3 - now) / 1800 }' "$TMPDIR"/runs/clock-*/logs/n0/rank-0.log | xargs)
[ "$told" = 'before 0 back -2 right 0 fast 0 fast 0 deaf 0 right 0' ] || fail "a clock: the job was told $told"
tests/clusters/ssh in "$bed" n0 find /var/tmp/rankquake-1000 -name '*.clock.*' | grep . && fail "the page of a clock is left"

# A directory that each host has for itself; a key that nobody knows.
says 3 'give --out a directory that all hosts share' by_ssh "$TMPDIR/calm.yaml" --fresh --out "$bed/local"
grep -qE '(n[01]|store) \(worker@n[01]\): .* is not there what it is here' "$TMPDIR/said" || fail "whose directory it is: $(cat "$TMPDIR/said")"
ssh-keygen -q -t ed25519 -N '' -f "$TMPDIR/wrong"
sed "s#IdentityFile .*#IdentityFile $TMPDIR/wrong#" "$bed/ssh_config" >"$TMPDIR/wrong_config"
says 4 'worker@n0: cannot be reached: exit code 255' by_ssh "$TMPDIR/calm.yaml" --out "$TMPDIR/runs" --ssh "ssh -F $TMPDIR/wrong_config"

# A harness that is killed in mid-run leaves nothing on any host: a helper holds the lock of its host as long as it lives.
scenario lost ''
sed -i 's/--steps=40/--steps=100000/' "$TMPDIR/lost.yaml"
killed=''
exec 5< <(by_ssh "$TMPDIR/lost.yaml" --out "$TMPDIR/killed" 2>&1 </dev/null)
while read -r -t 180 -u 5 line; do
    echo "$line" >>"$TMPDIR/killed.said"
    [[ -z $killed && $line == *'round 1: '* ]] || continue
    killed=$(pgrep -f "^$bin/rankquake run .* --out $TMPDIR/killed\$")
    kill -KILL "$killed"
done
[ -n "$killed" ] || fail "a harness that is killed: $(tail -n 20 "$TMPDIR/killed.said")"
for host in n0 n1; do
    tests/clusters/ssh in "$bed" $host flock -w 60 /var/tmp/rankquake-1000/$host.lock true || fail "a helper on $host outlives its harness"
    left_on $host
done

# A host that is lost in mid-run ends the run with its name, and leaves nothing on the other one.
killed='' rc=none
exec 5< <(by_ssh "$TMPDIR/lost.yaml" --out "$TMPDIR/lost" 2>&1 </dev/null; echo "rc $?")
while read -r -t 180 -u 5 line; do
    echo "$line" >>"$TMPDIR/lost.said"
    case $line in
    *'round 1: '*) [ -n "$killed" ] || { tests/clusters/ssh kill "$bed" n1; killed=1; } ;;
    'rc '*) rc=${line#rc } ;;
    esac
done
[ $rc = 3 ] && grep -q 'n1 (worker@n1): it was lost' "$TMPDIR/lost.said" || fail "a host that is lost: $rc, $(tail -n 20 "$TMPDIR/lost.said")"
left_on n0
[ $fails = 0 ]
