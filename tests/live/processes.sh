#!/usr/bin/env bash
# Where namespaces are refused nodes are processes of the host: as an ordinary user, a power failure and
# a cut network; two runs side by side do not meet; what the kernel does not let is skipped before it
# runs, with the reason and the flag; a harness that is killed leaves nothing.
# deadline: 180 s
set -u
. tests/live/patience.bash
refused=$(realpath "${OUT:-build/release}/tests/live/spawn_refused")
cd "$(dirname "$0")/../.." || exit 1
root=$PWD bad=0
fail() {
    echo "$*"
    bad=1
}

# Deeper than the name of a socket may be long.
dir=$TMPDIR/$(printf 'deep%.0s' {1..30})
mkdir "$dir" && cp -R "$BIN" "$dir/bin" && cp -R scenarios "$dir" && cp "$refused" "$dir/refused" || exit 1
who=()
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    who=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    chmod a+x "$TMPDIR"
fi
chmod -R a+rwX "$dir"
cd "$dir" || exit 1
export XDG_CACHE_HOME=$dir
rq() { "${who[@]}" ./refused "$@"; }

rq namespaces true || { echo 'no filter of system calls can be installed here'; exit 77; }

# ---- what is not let is skipped before anything runs ----

expect_skip() { # REFUSED SCENARIO SENTENCE...
    local what=$1 scenario=$2 sentence
    shift 2
    rq "$what" bin/rankquake run "$scenario" --out skipped >said 2>&1
    local rc=$?
    [ $rc = 4 ] || fail "$scenario without $what: exit $rc, not 4: $(cat said)"
    for sentence; do
        grep -q -- "$sentence" said || fail "$scenario without $what: '$sentence' is not said: $(cat said)"
    done
    [ ! -e skipped ] || fail "$scenario without $what: something was begun"
}
expect_skip namespaces,getfd scenarios/membership/node-powered-off.yaml 'dark (node-poweroff)' \
    'pidfd_getfd: Operation not permitted' '--cap-add SYS_PTRACE'
expect_skip namespaces,listener scenarios/network/partition-and-heal.yaml 'cut (net-partition)' \
    'seccomp with a listener' '--security-opt seccomp=unconfined'
rq namespaces,getfd bin/rankquake plan scenarios/restart/worker-killed.yaml >said 2>&1 ||
    fail "what needs no cut was refused: $(cat said)"
grep -q 'processes: every node is a tree' said && grep -q 'because namespaces are not possible' said ||
    fail "the plan does not say why: $(cat said)"
rq namespaces bin/rankquake run --isolation namespaces scenarios/restart/worker-killed.yaml --out skipped \
    >said 2>&1
rc=$?
[ $rc = 4 ] && grep -q 'refuses user namespaces' said || fail "namespaces asked for: exit $rc: $(cat said)"
rq namespaces,getfd bin/rankquake doctor >said 2>&1 || fail "doctor: exit $?"
grep -q '^isolation: processes would be used' said &&
    grep -q 'allow every fault but.*net-partition, node-poweroff' said &&
    grep -q 'to have namespaces: docker run --cap-add SYS_ADMIN --device /dev/fuse --security-opt seccomp=unconfined' \
        said || fail "doctor: $(cat said)"

# ---- runs ----

play() { # SCENARIO OUT
    rq namespaces bin/rankquake run "$1" --out "$2" >"$2.said" 2>&1
    local rc=$?
    [ $rc = 0 ] || { echo "$1: exit $rc"; cat "$2.said"; }
    return $rc
}
# A busy machine may end a round more: how many there were is not what is asked here. A step takes its time, so that a node
# is back before the last, however quick the machine is.
job='job:
  nnodes: "2:3"
  rdzv_conf: '"$watchful_map"'
  run: [ranktrain, --steps=80, --compute-ms=20, --checkpoint-every=10, --collective-timeout=30, "--checkpoint-dir={shared}/ckpt"]'
cat >dark.yaml <<END
cluster: {nodes: 3}
$job
timeline: [{id: dark, when: {step: 15}, fault: node-poweroff, on: n2}]
expect: {world_sizes: {ends: [2]}, model: same-as-undisturbed}
END
cat >cut.yaml <<END
cluster: {nodes: 3}
$job
timeline:
  - {id: cut, when: {step: 15}, fault: net-partition, on: n2}
  - {id: fix, when: {after: cut, round: 2, step: 21}, heal: cut}
expect: {world_sizes: {ends: [3]}, model: same-as-undisturbed}
END
play dark.yaml dark || bad=1
play cut.yaml cut || bad=1
for run in dark cut; do
    grep -q '^isolation processes: ' $run.said || fail "$run: the isolation is not named"
    grep -q '"kind":"fault-evidence".*the kernel dropped' $run/*/history.jsonl || fail "$run: no evidence"
    grep -q '"isolation":"processes"' $run/*/plan.json || fail "$run: the plan does not name the isolation"
done

echo 'job: {run: [sh, -c, "sleep 1"]}' >short.yaml
play short.yaml one & one=$!
play short.yaml other & other=$!
wait $one || bad=1
wait $other || bad=1
range() { sed -n 's/.*"addr":"\(127\.[0-9]*\.[0-9]*\)\..*/\1/p' "$1"/*/plan.json | head -n 1; }
[ -n "$(range one)" ] && [ "$(range one)" != "$(range other)" ] ||
    fail "side by side the addresses were $(range one) and $(range other)"

# ---- a user with more rights than his job is given ----

# The job must find the harness there, too; a job in Python by its own client.
./refused namespaces bin/rankquake run scenarios/restart/worker-killed.yaml --out own >said 2>&1 || fail "this user: exit $?: $(cat said)"
rm -rf own
cat >tells.yaml <<END
job: {run: [python3, -c, "import rankquake; rankquake.Client().event('told')"], env: {PYTHONPATH: $root/scenarios/jobs}}
END
if command -v python3 >/dev/null; then
    ./refused namespaces bin/rankquake run tells.yaml --out own >said 2>&1
    grep -q '"source":"job".*told' own/*/history.jsonl || fail "a job in Python is not heard: $(cat said)"
    rm -rf own
fi

# ---- a harness that is killed ----

mkfifo said.fifo
# The filter, the user and the harness are one process after another: its number is the harness's.
"${who[@]}" ./refused namespaces bin/rankquake run scenarios/restart/worker-killed.yaml --out killed \
    >said.fifo 2>&1 &
harness=$!
exec 7<said.fifo
while IFS= read -r -t 180 -u 7 line; do
    [[ $line =~ 'round 1' ]] && break
done
kill -KILL $harness
cat <&7 >/dev/null # until the last helper has ended
exec 7<&-
wait $harness 2>/dev/null
left=$(grep -zls "^TMPDIR=$dir/killed/" /proc/[0-9]*/environ) && fail "left behind: $left"
"${who[@]}" bin/rankquake clean killed >said 2>&1 || fail "clean: exit $?: $(cat said)"
ls -d killed/*/scratch killed/*/control/scratch 2>/dev/null && fail 'clean has left a scratch directory'
exit $bad
