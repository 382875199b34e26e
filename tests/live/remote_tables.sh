#!/usr/bin/env bash
# Partitions of hosts where the helper is root: by a filter of their packets that belongs to it, which leaves alone the way by which it
# is reached, whose counters show the cut, and which ends with the helper, however that does. n0, which shares its host with the store,
# goes by sockets.
# deadline: 300 s
set -u
. tests/live/patience.bash
bin=${BIN:-build/bin} fails=0
fail() { echo "remote_tables: $*"; fails=$((fails + 1)); }
. tests/live/bed.bash
bed_up ssh 3
tests/clusters/ssh in "$bed" ctl "$bin/rankquake" doctor --provider ssh --hosts n2 --ssh "ssh -F $bed/ssh_config" >"$TMPDIR/said" 2>&1
grep -q 'can: .*owned-tables' "$TMPDIR/said" || { echo "this kernel has no tables that belong to a process: $(cat "$TMPDIR/said")"; exit 77; }

scenario() { # scenario NAME STEPS ENTRY...: an endless one is short in its control run
    local run="[ranktrain, --steps=$2, --compute-ms=10, --checkpoint-every=10, --collective-timeout=6, \"--checkpoint-dir={shared}/ckpt\"]"
    [ "$2" != endless ] || run='[sh, -c, "case {out} in */control) n=40 ;; *) n=100000 ;; esac; exec ranktrain --steps=$n --compute-ms=10 --collective-timeout=6"]'
    cat >"$TMPDIR/$1.yaml" <<YAML
scenario: $1
about: Hosts are cut off from each other.
cluster: {nodes: 3}
job:
  nnodes: "2:3"
  rdzv_conf: {profile: fast, hb: 300ms, fence: 2s, hard: 2.1s, suspect: 2.3s}
  run: $run
timeline:
YAML
    printf '  - %s\n' "${@:3}" >>"$TMPDIR/$1.yaml"
}
passed() { # passed NAME
    local got
    run "$1" >"$TMPDIR/said"
    got=$?
    [ $got = 0 ] || { [ $got = 2 ] && only_hosts_were_late "$TMPDIR/said"; }
}
run() { # run NAME
    tests/clusters/ssh in "$bed" ctl env PATH="$(realpath "$bin"):$PATH" "$bin/rankquake" run "$TMPDIR/$1.yaml" --out "$TMPDIR/$1" \
        --provider ssh --hosts n0,n1,n2 --ssh "ssh -F $bed/ssh_config" 2>&1 </dev/null
}
history() { echo "$TMPDIR/$1"/*/history.jsonl; }
reaches() { tests/clusters/ssh in "$bed" "$1" timeout "$3" bash -c "exec 3<>/dev/tcp/$2/22" 2>/dev/null; } # by a connection of its own

# What comes back is felt, counted and over.
scenario cut 120 '{id: cut, when: {step: 25}, fault: net-partition, with: {groups: "n0,n1,store|n2"}, for: 4s}'
passed cut || fail "a partition: $(grep -E '^  ([?]|✗) ' "$TMPDIR/said"; tail -n 40 "$TMPDIR/said")"
grep -q "\"kind\":\"fault-evidence\".*\"what\":\"the kernel's filter dropped packets" $(history cut) || fail "no filter has shown the partition"
grep -qE '"kind":"socket-drops","node":"n2","dropped_in":[0-9]+,"dropped_out":[1-9].*"by":"table"' $(history cut) || fail "nothing that n2 said was dropped"
grep -q '"kind":"socket-drops","node":"n0".*"by":"sockets"' $(history cut) || fail "n0 has a table of its host, on which the store is"
reaches n1 n2 60 || fail "what was cut stays so"

# One that is cut off from everybody is still heard, and dies unheard.
scenario dark 60 '{id: dark, when: {step: 25}, fault: node-poweroff, on: n2}'
passed dark || fail "a node without power: $(grep -E '^  ([?]|✗) ' "$TMPDIR/said"; tail -n 40 "$TMPDIR/said")"
grep -qE '"kind":"fault-evidence".*"dropped_out":[1-9]' $(history dark) || fail "what it said was not dropped"
reaches n1 n2 60 || fail "a host whose node has lost its power stays cut off"

# A helper that is killed takes its cut along.
scenario killed endless '{id: cut, when: {step: 25}, fault: net-partition, with: {groups: "n0,n1,store|n2"}}'
killed='' rc=none
exec 5< <(run killed; echo "rc $?")
while read -r -t 180 -u 5 line; do
    echo "$line" >>"$TMPDIR/killed.said"
    case $line in
    *'cut: net-partition'*)
        [ -z "$killed" ] || continue
        ! reaches n1 n2 2 || fail "n2 is not cut off"
        keeper=$(tests/clusters/ssh in "$bed" n2 pgrep -o -f rankquake-node)
        killed=$(tests/clusters/ssh in "$bed" n2 pgrep -P "$keeper" -f rankquake-node)
        tests/clusters/ssh in "$bed" n2 kill -KILL "$killed"
        reaches n1 n2 60 || fail "the cut outlives its helper"
        ;;
    'rc '*) rc=${line#rc } ;;
    esac
done
[ -n "$killed" ] && [ "$rc" = 3 ] && grep -q 'n2 (n2): it was lost' "$TMPDIR/killed.said" || fail "a helper that is killed: $rc, $(tail -n 20 "$TMPDIR/killed.said")"
[ $fails = 0 ]
