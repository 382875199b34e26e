#!/usr/bin/env bash
# rankquake shrink: of two faults the one that makes the job fail is found by running it, and the scenario that is
# written has it alone; what is no failed run is refused. tests/soak/shrink.sh does the rest.
# deadline: 120 s
set -u
if ! command -v python3 >/dev/null; then
    echo 'python3 is missing'
    exit 77
fi
rq=$(cd "$BIN" && pwd)/rankquake
cp scenarios/jobs/rankquake.py "$TMPDIR"
cd "$TMPDIR" || exit 1
export XDG_CACHE_HOME=$TMPDIR/cache
bad=0
fail() {
    echo "$*"
    tail -n 20 said
    bad=1
}
refused() { # refused PATTERN ARG...
    local pattern=$1
    shift
    timeout 300 "$rq" shrink "$@" >said 2>&1
    local rc=$?
    [ $rc = 64 ] || fail "shrink $*: exit $rc, not 64"
    grep -qE -- "$pattern" said || fail "shrink $* does not say $pattern"
}

# A worker that was stopped behind step 7 does not come up again.
cat >train.py <<END
import os, sys, rankquake

state = sys.argv[1]
rq = rankquake.Client()
rq.ready()
step = int(open(state).read()) if os.path.exists(state) else 0
if step == 7:
    sys.exit(9)
rq.resume(step, state if step else "")
for step in range(step + 1, 12):
    with open(state + ".new", "w") as f:
        f.write(str(step))
    os.rename(state + ".new", state)
    rq.step(step)
rq.done("0" * 64)
END
cat >two.yaml <<END
scenario: two
cluster: {nodes: 1, store: none}
job: {nnodes: "1:1", max_restarts: 2, run: [python3, -S, train.py, "{shared}/state"]}
timeline:
  - {id: harmless, when: {step: 4}, fault: worker-kill, on: rank 0}
  - {id: deadly, when: {step: 7}, fault: worker-kill, on: rank 0}
expect: {restarts: 2}
END
timeout 300 "$rq" run two.yaml --seed 7 --out out >said 2>&1
rc=$?
[ $rc != 4 ] || { tail -n 1 said; exit 77; }
[ $rc = 1 ] || { fail "the job was to fail: exit $rc"; exit 1; }
run=$(echo out/two-7-*)

refused 'which run' # none
refused 'No such file' out/nothing
refused 'is no run: scenario.yaml is missing' out
grep -q "it holds 1 run: give one" said || fail 'the run in it is not named'
refused 'it did not fail there; what failed is outcome' "$run" --check ranks
refused 'of how many runs' "$run" --share 50
refused 'control run' "$run/control"
mkdir cut && cp "$run/scenario.yaml" cut && head -n 40 "$run/history.jsonl" >cut/history.jsonl
refused 'stops before the job has ended' cut
{ cat "$run/scenario.yaml"; echo 'surprise: 1'; } >cut/scenario.yaml
refused 'surprise' cut

timeout 300 "$rq" shrink "$run" >said 2>&1
rc=$?
[ $rc = 0 ] || fail "shrink: exit $rc"
grep -qE '1  as recorded +[0-9.]+ s  fails the same' said || fail 'the run as recorded is not told'
grep -qE 'without deadly +[0-9.]+ s  passes' said || fail 'what does not fail is not told'
smallest=$run/shrink/smallest.yaml
[ "$(grep -c 'fault:' "$smallest")" = 1 ] && grep -q '"deadly"' "$smallest" || fail "it is not the smallest: $(cat "$smallest")"
grep -q "^seed: 7" "$smallest" && grep -q "^# .*$run" "$smallest" || fail "it does not say where it is from: $(cat "$smallest")"
"$rq" lint "$smallest" >said 2>&1 || fail 'what was written is no scenario'
exit $bad
