#!/usr/bin/env bash
# Scenarios on the hosts of a Slurm allocation, each node below a helper that is a step: hosts that nobody has named, a fault at an exact
# step, an allocation that ends in mid-run, which is told with the host's name, and helpers that are lost in the middle of a partition.
# Nothing is left there.
# deadline: 400 s
set -u
bin=${BIN:-build/bin} fails=0
fail() { echo "remote_slurm: $*"; fails=$((fails + 1)); }
. tests/live/bed.bash
bed_up slurm 2
scenario() { # scenario NAME STEPS [ENTRY]; which hosts these are Slurm knows
    cat >"$TMPDIR/$1.yaml" <<YAML
scenario: $1
about: A job on two hosts of an allocation.
cluster: {provider: slurm, nodes: 2}
job:
  nnodes: "1:2"
  workers_per_node: 2
  rdzv_conf: {hb: 1s, fence: 20s, hard: 21s, suspect: 23s}
  run: [ranktrain, --steps=$2, --compute-ms=10, --checkpoint-every=10, --collective-timeout=60, "--checkpoint-dir={shared}/ckpt"]
YAML
    [ -z "${3-}" ] || printf 'timeline:\n  - %s\n' "$3" >>"$TMPDIR/$1.yaml"
}
inside() { # inside COMMAND...: of an allocation of both hosts
    tests/clusters/slurm in "$bed" ctl salloc -Q --no-kill -N 2 -J remote "$@"
}
left() {
    local host
    for host in n0 n1; do
        # shellcheck disable=SC2009
        tests/clusters/slurm in "$bed" $host ps -eo args | grep -E '^[^ ]*(rankquake-node|rankrun|rankprobe|ranktrain)' && fail "left on $host"
    done
}

scenario killed 40 '{id: f, when: {step: 25}, fault: worker-kill, on: rank 3}'
"$bin/rankquake" run "$TMPDIR/killed.yaml" --out "$TMPDIR/runs" >"$TMPDIR/said" 2>&1
[ $? = 64 ] && grep -q 'needs an allocation, and this is none' "$TMPDIR/said" || fail "outside of an allocation: $(cat "$TMPDIR/said")"
for asked in "doctor" "plan $TMPDIR/killed.yaml" "run $TMPDIR/killed.yaml --out $TMPDIR/runs"; do
    # shellcheck disable=SC2086
    "$bin/rankquake" $asked --provider slurm >"$TMPDIR/said" 2>&1
    [ $? = 64 ] && grep -q 'needs an allocation, and this is none' "$TMPDIR/said" || fail "$asked outside: $(cat "$TMPDIR/said")"
    [ "${asked%% *}" != run ] || continue
    # shellcheck disable=SC2086
    inside "$bin/rankquake" $asked --provider slurm >"$TMPDIR/said" 2>&1 || fail "$asked inside: $(cat "$TMPDIR/said")"
    grep -qw n0 "$TMPDIR/said" && grep -qw n1 "$TMPDIR/said" || fail "$asked names no hosts: $(cat "$TMPDIR/said")"
done
inside env -u SLURM_JOB_NODELIST "$bin/rankquake" doctor --provider slurm >"$TMPDIR/said" 2>&1
[ $? = 64 ] && grep -q SLURM_JOB_NODELIST "$TMPDIR/said" || fail "an allocation without a list: $(cat "$TMPDIR/said")"
inside "$bin/rankquake" run "$TMPDIR/killed.yaml" --out "$TMPDIR/runs" >"$TMPDIR/said" 2>&1 ||
    fail "a worker that is killed: $(tail -n 50 "$TMPDIR/said")"
grep -q '"kind":"fault-fired".*"step":25,.*"held":true' "$TMPDIR"/runs/killed-*/history.jsonl || fail "the fault did not come at step 25"
grep -q '"kind":"fault-evidence"' "$TMPDIR"/runs/killed-*/history.jsonl || fail "the fault was not felt"
left

# An allocation that is cancelled in mid-run, at once or as an operator does: told to end first, and by that maybe the job before the helpers.
scenario ended 100000
for signal in --signal=KILL ''; do
    cancelled='' rc=none
    : >"$TMPDIR/ended.said"
    exec 5< <(inside "$bin/rankquake" run "$TMPDIR/ended.yaml" --out "$TMPDIR/runs" 2>&1 </dev/null; echo "rc $?")
    while read -r -t 180 -u 5 line; do
        echo "$line" >>"$TMPDIR/ended.said"
        case $line in
        *'round 1: '*) [ -n "$cancelled" ] || { tests/clusters/slurm in "$bed" ctl scancel $signal --name=remote; cancelled=1; } ;;
        'rc '*) rc=${line#rc } ;;
        esac
    done
    exec 5<&-
    [ "$rc" = 3 ] && grep -qE '(n[01] \(n[01]\)|store \(n0\)): it was lost' "$TMPDIR/ended.said" ||
        fail "an allocation that ends ($signal): $rc, $(tail -n 20 "$TMPDIR/ended.said")"
    left
done

# In the middle of a partition the srun of each helper is killed, or its allocation cancelled: nothing is left, and others hear each other.
command -v python3 >/dev/null || { echo "python3 is not installed: no partition was tried"; [ $fails = 0 ]; exit; }
cp tests/live/parted_job.py "$bin/rankquake-node" "$TMPDIR"
for how in sockets table; do
    tests/clusters/slurm in "$bed" ctl python3 tests/live/parted_ends.py "ends-$$" "$bed/slurm.conf" root "$TMPDIR" $how \
        carrier scancel scancel-kill >"$TMPDIR/ends" 2>"$TMPDIR/said" || fail "ends by $how: $(cat "$TMPDIR/ends"; tail -n 5 "$TMPDIR/said")"
    grep '^skipped' "$TMPDIR/ends"
done
left
[ $fails = 0 ]
