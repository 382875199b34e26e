#!/usr/bin/env bash
# Limits of the host: stack, processes, address space, open files. Whoever meets one says so in a sentence that names it,
# and no job has failed for that.
# deadline: 240 s
set -u
. tests/live/patience.bash
bin=$(realpath "$BIN")
bad=0
fail() {
    echo "$*"
    bad=1
}

# ---- a small stack ----

small_stack() { # EXIT SENTENCE PROGRAM...
    local wanted=$1 sentence=$2 rc
    shift 2
    (ulimit -s 64 && exec "$@") >"$TMPDIR/said" 2>&1
    rc=$?
    { [ $rc = "$wanted" ] && grep -q "$sentence" "$TMPDIR/said"; } || fail "$*: exit $rc: $(cat "$TMPDIR/said")"
}
small_stack 3 'rankquake: the stack may have 64 kB .* ulimit -s 8192' "$bin/rankquake" lint scenarios/tour.yaml
small_stack 71 'rankrun: the stack may have 64 kB .* ulimit -s 8192' "$bin/rankrun" --standalone --no-python true
small_stack 1 'ranktrain: the stack may have 64 kB .* ulimit -s 8192' "$bin/ranktrain" --steps=1
small_stack 0 'it became this' "$bin/rankprobe" echo it became this

# ---- too little memory for OpenBLAS ----

little_memory() { # a job in 100 MB
    (ulimit -v 100000 && exec timeout -s KILL 60 "$bin/ranktrain" --steps=1) >"$TMPDIR/said" 2>&1
    rc=$?
    if grep -q 'there is no data\|cannot be loaded' "$TMPDIR/said"; then
        echo "ranktrain cannot train here: $(cat "$TMPDIR/said")"
    else
        { [ $rc = 1 ] && grep -q 'ulimit -v' "$TMPDIR/said"; } || fail "ranktrain in 100 MB: exit $rc: $(cat "$TMPDIR/said")"
    fi
}
# What fails in the control run under a limit of the host need not be the job's fault.
host_to_blame() {
    printf 'cluster: {nodes: 1}\njob: {run: ["false"]}\n' >"$TMPDIR/fails.yaml"
    (ulimit -v 4000000 && exec "$bin/rankquake" run "$TMPDIR/fails.yaml" --out "$TMPDIR/fails") >"$TMPDIR/said" 2>&1
    rc=$?
    [ $rc = 4 ] && return
    { [ $rc = 3 ] && grep -q 'so no fault was tried: .*; this host may be to blame: a process may have 4000000 kB' "$TMPDIR/said"; } ||
        fail "a control run that fails under ulimit -v: exit $rc: $(cat "$TMPDIR/said")"
}
# Under the address sanitizer a program has terabytes of addresses from its first instruction on, and cannot be given fewer.
addresses=()
if [ "${BUILD-}" = asan ]; then
    echo 'ulimit -v is not tried: no program of the address sanitizer starts under it'
else
    addresses=('-v 200000')
    little_memory
    host_to_blame
fi

# ---- a cluster under limits, as an ordinary user: root may have as many processes as it likes ----

who=()
if [ "$(id -u)" = 0 ]; then
    command -v setpriv >/dev/null || { echo 'no setpriv'; exit 77; }
    who=(setpriv --reuid=64321 --regid=64321 --clear-groups)
    chmod a+x "$TMPDIR"
fi
dir=$TMPDIR/own
mkdir "$dir" && cp -R "$bin" "$dir/bin" && chmod -R a+rwX "$dir" || exit 1
cd "$dir" || exit 1
export XDG_CACHE_HOME=$dir HOME=$dir TMPDIR=$dir
cat >s.yaml <<END
scenario: limits
cluster: {nodes: 2, isolation: processes}
job:
  nnodes: 2
  workers_per_node: 2
  rdzv_conf: $watchful_map
  run: [ranktrain, --steps=20, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt"]
timeline: [{id: kill, when: {step: 5}, fault: worker-kill, on: rank 1}]
END
under() { # LIMIT: sets rc
    # shellcheck disable=SC2086
    "${who[@]}" bash -c 'ulimit $0 && exec bin/rankquake run s.yaml --out out' "$1" >said 2>&1
    rc=$?
}
under '-c 0' # what is judged by is made without a limit
[ $rc = 4 ] && { tail -n 1 said; exit 77; }
[ $rc = 0 ] || only_harness_was_late said || fail "without a limit: exit $rc: $(cat said)"
for limit in '-u 6' "${addresses[@]}" '-n 16'; do
    under "$limit"
    { [ $rc = 3 ] && grep -q "(ulimit ${limit%% *}" said; } || fail "$limit: exit $rc, wanted 3: $(cat said)"
done
# Enough for the cluster, not for certain for the job: whatever comes of it is not the job's failure.
for processes in 13 14 15 16 17 18 20 24; do
    under "-u $processes"
    case $rc in
    0 | 2 | 3) ;;
    *) fail "-u $processes: exit $rc: $(cat said)" ;;
    esac
    grep -q '^  ✗' said && fail "-u $processes: $(cat said)"
done
exit $bad
