#!/usr/bin/env bash
# A node on a host whose clock is seven seconds ahead and drifts by 100 ppm: what happens there is recorded in the harness's
# time, the truth lies within every bound, checks judge by it, and what hangs on an order closer than the bounds is unknown and
# says which moments, whose clock and how close. A clock that is set while a job runs is told by its host's name.
# alone: a run has a host to itself, and so have the runs of other tests
# deadline: 300 s
set -u
. tests/live/patience.bash
bin=$(realpath "${BIN:-build/bin}") here=$(realpath tests/live) fails=0
fail() { echo "clocks_of_hosts: $*"; fails=$((fails + 1)); }
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
unshare -T --monotonic 7 true 2>/dev/null || { echo "no time namespaces here"; exit 77; }
ahead="python3 $here/drifting.py 100 $TMPDIR/first unshare -T --monotonic 7 $bin/rankquake-node"

scenario() { # scenario NAME STEPS
    cat >"$TMPDIR/$1.yaml" <<END
about: Two hosts, one of which has a clock of its own
cluster: {nodes: 2, provider: exec, hosts: ["$bin/rankquake-node", "$ahead"]}
job:
  rdzv_conf: $watchful_map
  run: [ranktrain, --steps=$2, --checkpoint-every=5, "--checkpoint-dir={shared}/ckpt", --compute-ms=100]
timeline:
  - {id: kill, when: {step: 8}, fault: worker-kill, on: rank 1}
expect: {outcome: succeeded, recover_within: 60s, detect_within: 60s}
limits: {total: 180s}
END
}
# On a host that has no processor to spare helpers stamp late, and say so: what is open must be open for that.
only_too_close() { # only_too_close FILE
    local open
    open=$(grep -E '^  [?] ' "$1") && ! grep -qvE 'too close to tell|but the harness itself was late by' <<<"$open"
}
run_of() { echo "$TMPDIR"/"$1"/*/history.jsonl; }

# ---- the truth lies within each bound, and the verdict is what it is on one clock ----

scenario drifts 30
"$bin/rankquake" run "$TMPDIR/drifts.yaml" --out "$TMPDIR/drifts" </dev/null >"$TMPDIR/said" 2>&1
rc=$?
[ $rc = 0 ] || { [ $rc = 2 ] && only_too_close "$TMPDIR/said"; } || fail "exit $rc: $(cat "$TMPDIR/said")"
python3 "$here/stamps.py" "$(run_of drifts)" n1 "$TMPDIR/first" 7000000000 100 || fail "bounds of n1"
grep -q 'training again after [0-9]* ms +- [0-9.]* ms' "$TMPDIR/said" || fail "no bound behind a time: $(cat "$TMPDIR/said")"
grep -qE 'n1 .*: 7\.00[0-9]* s ahead, asked [0-9]+ times, its stamps known to \+-' "$TMPDIR/said" || fail "n1's clock is not told"
dir=$(dirname "$(run_of drifts)")
grep -q 'name="clock.n1" value=".*: 7.00' "$dir/junit.xml" || fail "junit.xml tells no clock"
grep -q '<h2>Clocks</h2>' "$dir/report.html" || fail "the page tells no clock"
grep -q '"clocks":\[' "$dir/report.json" || fail "report.json tells no clock"
printf '%s\n' "$bin/rankquake-node" "$ahead" >"$TMPDIR/hosts" # a file's commands are not started for a plan
"$bin/rankquake" plan --provider exec --hostfile "$TMPDIR/hosts" "$TMPDIR/drifts.yaml" </dev/null >"$TMPDIR/plan" 2>&1
grep -qE 'n1 .* its clock is (6999|700[01])\.[0-9]+ to (6999|700[01])\.[0-9]+ ms ahead of ours' "$TMPDIR/plan" || fail "plan: $(cat "$TMPDIR/plan")"

# ---- the same run where nobody knows the clock better than to ten seconds ----

if [ $rc = 0 ] || [ $rc = 2 ]; then
    cp -R "$dir" "$TMPDIR/wide"
    sed -i -E 's/"bound":[0-9]+/"bound":10000000000/' "$TMPDIR/wide/history.jsonl"
    sed -i -E 's/,"there":[0-9]+//' "$TMPDIR/wide/history.jsonl"
    "$bin/rankquake" judge "$TMPDIR/wide" </dev/null >"$TMPDIR/said" 2>&1
    rc=$?
    [ $rc = 2 ] || fail "with a bound of 10 s: exit $rc: $(cat "$TMPDIR/said")"
    grep -qE 'record [0-9]+ \(.*\) came [0-9.]+ ms before record [0-9]+ \(.*\), and the clock' "$TMPDIR/said" || fail "no two moments: $(cat "$TMPDIR/said")"
    grep -q 'too close to tell' "$TMPDIR/said" || fail "it is not said why: $(cat "$TMPDIR/said")"
    grep -qE '^  ✗|^  x ' "$TMPDIR/said" && fail "something failed by luck: $(cat "$TMPDIR/said")"
fi

# ---- a clock that is set while the job runs ----

scenario steps 60
STEP=3000000000 STEP_AFTER=3 "$bin/rankquake" run "$TMPDIR/steps.yaml" --out "$TMPDIR/steps" </dev/null >"$TMPDIR/said" 2>&1
rc=$?
[ $rc = 0 ] || [ $rc = 2 ] || fail "a clock that is set: exit $rc: $(cat "$TMPDIR/said")"
grep -q 'its clock was set by +3.00' "$TMPDIR/said" || fail "a clock that is set is not told: $(cat "$TMPDIR/said")"
grep -q 'beware .*harness_health: .*the clock of python3 .* was set by +3.00' "$TMPDIR/said" || fail "it is not told below the headline: $(cat "$TMPDIR/said")"
python3 "$here/stamps.py" "$(run_of steps)" n1 "$TMPDIR/first" 7000000000 100 3000000000 || fail "bounds of n1, whose clock was set"
[ $fails = 0 ]
