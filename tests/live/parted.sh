#!/usr/bin/env bash
# Hosts of a bed are cut off from each other by their helpers, which ssh reaches: by sockets as an ordinary user, by a table of packets
# as root. The job feels it, helpers count it, the third host is left alone, and what is undone is over.
# alone: helpers that wait for a processor stamp late, and checks are open then
# deadline: 300 s
set -u
. tests/live/patience.bash
bin=${BIN:-build/bin} fails=0
fail() { echo "parted: $*"; fails=$((fails + 1)); }
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
bed=$TMPDIR/bed
tests/clusters/ssh up "$bed" 3 >"$TMPDIR/said" 2>&1
case $? in
0) trap 'tests/clusters/ssh down "$bed"' EXIT ;;
77) cat "$TMPDIR/said"; exit 77 ;;
*) fail "no hosts: $(cat "$TMPDIR/said")"; exit 1 ;;
esac
chmod 711 "$TMPDIR" # an ordinary user is let in
cp tests/live/parted_job.py "$bin/rankquake-node" "$bin/rankquake" "$TMPDIR" && chmod 755 "$TMPDIR"/rankquake-node "$TMPDIR"/parted_job.py
parted() { # parted USER PART...
    tests/clusters/ssh in "$bed" ctl python3 tests/live/parted.py "parted-$$" "$bed/ssh_config" "$1" "$TMPDIR" "${@:2}" >"$TMPDIR/parted" ||
        fail "as $1"
    cat "$TMPDIR/parted"
}
ends() { # ends USER HOW: the harness is lost in the middle of a partition, once in each way
    tests/clusters/ssh in "$bed" ctl python3 tests/live/parted_ends.py "parted-$$" "$bed/ssh_config" "$1" "$TMPDIR" "$2" \
        harness carrier helper keeper silent card >"$TMPDIR/ends" || fail "ends as $1: $(cat "$TMPDIR/ends")"
}
parted worker refusals sockets one_way planes late left
ends worker sockets
parted root refusals one_way planes table everybody
grep -q '^skipped: tables' "$TMPDIR/parted" || ends root table

# A scenario on these hosts: a node is cut off, goes on alone for a while, and comes back; another one loses its power, and one beside which the store is.
run() { # run SCENARIO
    local rc
    tests/clusters/ssh in "$bed" ctl env PATH="$(realpath "$bin"):$PATH" "$(realpath "$bin/rankquake")" run "scenarios/$1" --out "$TMPDIR/runs" \
        --provider ssh --hosts n0,n1,n2 --ssh "ssh -F $bed/ssh_config" >"$TMPDIR/said" 2>&1 </dev/null
    rc=$?
    [ $rc = 0 ] && grep -q '^✓\|^+' "$TMPDIR/said" && return
    [ $rc = 2 ] && only_hosts_were_late "$TMPDIR/said" && return
    fail "$1: exit code $rc"
    cat "$TMPDIR/said"
    whats_wrong "$TMPDIR/said"
}
for s in network/partition-and-heal.yaml membership/node-powered-off.yaml membership/rank-0-node-lost.yaml; do
    run $s
done
[ $fails = 0 ]
