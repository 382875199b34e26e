#!/usr/bin/env bash
# How often scenarios are run and which: repeat, --budget, feature; and a schedule that was drawn comes as the plan says.
# deadline: 120 s
set -u
. tests/live/patience.bash
rq=$(cd "$BIN" && pwd)/rankquake
cd "$TMPDIR" || exit 1
export XDG_CACHE_HOME=$TMPDIR/cache
bad=0
fail() {
    echo "$*"
    bad=1
}
# run EXPECTED PATTERN ARG...: the exit code, and what is printed.
run() {
    local want=$1 pattern=$2
    shift 2
    timeout 300 "$rq" run "$@" --out out >said 2>&1
    local rc=$?
    [ $rc != 4 ] || [ "$want" = 4 ] || { tail -n 3 said; exit 77; }
    [ $rc = "$want" ] || fail "run $*: exit $rc, not $want: $(tail -n 5 said)"
    grep -qE -- "$pattern" said || fail "run $* does not say $pattern: $(tail -n 5 said)"
}

# The third time it is run at all (the control run is the first) it fails.
cat >flaky.yaml <<END
cluster: {nodes: 1, store: none}
job: {max_restarts: 0, run: [sh, -c, "echo x >>$TMPDIR/count; test \$(wc -l <$TMPDIR/count) != 3"]}
repeat: {runs: 3, seeds: each, failures: 1}
END
run 0 'flaky: 1 of 3 runs failed, repeat.failures allows 1' flaky.yaml
grep -q '3 runs: 2 passed, 1 failed' said || fail "the failure was not counted: $(tail -n 5 said)"
grep -q '^failure rate 33.3 % of 3 judged, between 6.1 % and 79.2 % (95 % confidence)$' said || fail "the rate: $(tail -n 5 said)"
for seed in 1 2 3; do ls -d out/flaky-$seed-* >/dev/null || fail "seed $seed was not run"; done
rm -f count
sed -i 's/, failures: 1/, until: failure/' flaky.yaml
echo x >count
run 1 'failed' flaky.yaml
[ "$(wc -l <count)" = 3 ] || fail "it went on after the first failure: $(wc -l <count) runs"
run 0 'passed' flaky.yaml --repeat 1

sed 's/^repeat.*//; s/flaky/calm/' flaky.yaml >calm.yaml
{ cat calm.yaml; echo 'feature: [cpus 1, command exit 7]'; } >demanding.yaml
timeout 300 "$rq" run demanding.yaml --out out >said 2>&1
[ $? = 4 ] && grep -q 'feature command exit 7: it ends with exit code 7' said || fail "feature: $(tail -n 5 said)"
run 4 'left out by --budget 1 s: 2 of 2' calm.yaml flaky.yaml --budget 1ms
grep -q '  flaky (flaky.yaml), about ' said || fail "what was left out is not named: $(tail -n 5 said)"
# What took long the last time is left out first, wherever it stands.
for file in "$XDG_CACHE_HOME"/rankquake/durations/*; do printf 90000000 >"$file"; done
run 0 'left out by --budget 3600 s: 1 of 2' flaky.yaml calm.yaml --budget 1h --repeat 1
grep -q '  flaky (flaky.yaml), about 90000 s' said || fail "the slow one was not left out: $(tail -n 5 said)"

# What was answered and is not any more is told, here by the report of the run, in JUnit and at the end of a suite.
{ cat calm.yaml; echo 'expect: {restarts: 0}'; } >asked.yaml
run 0 passed asked.yaml
grep -qE 'fewer' said && fail "nothing was lost: $(cat said)"
cp calm.yaml asked.yaml
run 0 '^fewer checks were answered from evidence than before: asked$' asked.yaml calm.yaml
grep -qE '^fewer +1 check that was answered in .*/out/asked-1-.* is not now: restarts \(skip\)$' said || fail "the loss is not told: $(cat said)"
grep -q '<property name="fewer" value="1 check' out/asked-1-*/junit.xml || fail 'the loss is not in JUnit'
"$rq" judge "$(grep -l '"lost"' out/asked-1-*/lost.json | xargs dirname)" | grep -q '^fewer ' || fail 'judged again the loss is not told'

# It goes on until all of them have come, which the control run does not wait for.
cat >drawn.yaml <<END
cluster: {nodes: 2}
job:
  nnodes: "1:2"
  max_restarts: 3
  rdzv_conf: $patient_map
  run: [bash, -c, 'case {out} in */control) exit ;; esac; grep -m 4 "fault-in-forc[e]" < <(tail -n +1 -f {out}/history.jsonl)']
random: {faults: 3, weights: {worker-kill: 1, node-kill: 1}, every: 300ms, repair: 300ms}
END
"$rq" plan drawn.yaml --seed 5 >plan 2>&1
run 0 'passed' drawn.yaml --seed 5
for line in $(sed -n 's/^  \(drawn-[0-9a-z-]*\): .*/\1/p' plan); do
    grep -q "$line: " said || fail "$line of the plan did not come: $(tail -n 5 said)"
done
exit $bad
