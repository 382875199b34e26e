#!/usr/bin/env bash
# rankquake shrink on a run of four nodes and five faults, of which only two together make the job fail: it ends with
# these two and two nodes, in the same way each time; with --budget and when it is interrupted the best so far is
# written and nothing runs on; --repeat finds a failure that does not always come.
# deadline: 1200 s
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
    tail -n 40 said
    bad=1
}

# Does not bear a restart once it has become smaller, nor a loss of nodes once it was restarted.
cat >train.py <<END
import os, sys, time, rankquake

shared, world = sys.argv[1], int(os.environ["WORLD_SIZE"])
state = shared + "/state-" + os.environ["RANK"]
began = shared + "/world"
rq = rankquake.Client()
rq.ready()
if not os.path.exists(began):
    with open(began, "w") as f:
        f.write(str(world))
elif 0 < world < int(open(began).read() or world) and os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
    sys.exit(9)
step = int(open(state).read()) if os.path.exists(state) else 0
rq.resume(step, state if step else "")
for step in range(step + 1, 121):
    time.sleep(0.01)
    with open(state + ".new", "w") as f:
        f.write(str(step))
    os.rename(state + ".new", state)
    rq.step(step)
rq.done("0" * 64)
END
cat >five.yaml <<END
scenario: five
cluster: {nodes: 4}
job: {nnodes: "1:4", max_restarts: 3, rdzv_conf: {profile: fast}, run: [python3, train.py, "{shared}"]}
timeline:
  - {id: nap, when: {step: 10}, fault: worker-hang, on: rank 3, for: 200ms}
  - {id: kill, when: {after: nap, step: 30}, fault: worker-kill, on: random of workers}
  - {id: doze, when: {after: kill, round: 2, step: 40}, fault: worker-hang, on: rank 2, for: 200ms}
  - {id: lose, when: {after: doze, plus: 100ms}, fault: node-kill, on: n2}
  - {id: rest, when: {after: lose, round: 3, step: 90}, fault: worker-hang, on: rank 0, for: 200ms}
expect: {restarts: 1, world_sizes: [4, 4, 3]}
END
timeout 120 "$rq" run five.yaml --out out >said 2>&1
rc=$?
[ $rc != 4 ] || { tail -n 1 said; exit 77; }
run=$(echo out/five-1-*)
[ $rc = 1 ] || [ $rc = 2 ] || { fail "the job was to fail: exit $rc"; exit 1; }

timeout 600 "$rq" shrink "$run" >said 2>&1
rc=$?
cp said first
[ $rc = 0 ] || fail "shrink: exit $rc"
smallest=$run/shrink/smallest.yaml
[ "$(grep -c 'fault:' "$smallest")" = 2 ] || fail "not two faults are left: $(cat "$smallest")"
grep -q '"kill"' "$smallest" && grep -q '"lose"' "$smallest" || fail "not these two: $(cat "$smallest")"
grep -q 'cluster: {nodes: 2, ' "$smallest" || fail "not two nodes are left: $(cat "$smallest")"
timeout 120 "$rq" run "$smallest" --out again >said 2>&1
[ $? = 1 ] && grep -q 'outcome' said || fail 'what was written does not fail'

# Interrupted after it has failed once: what is left is a scenario, and nobody.
mkfifo pipe
timeout 300 "$rq" shrink "$run" --out stopped >pipe 2>&1 &
pid=$!
exec 7<pipe
: >said
while IFS= read -r -t 120 -u 7 line; do
    echo "$line" >>said
    [[ $line != *' fails the same' ]] || { kill -INT "$(pgrep -P $pid)"; break; } # timeout's only child
done
cat <&7 >>said
exec 7<&-
wait $pid
rc=$?
[ $rc = 130 ] || fail "interrupted: exit $rc"
"$rq" lint stopped/smallest.yaml >>said 2>&1 && grep -q 'interrupted: there may be a smaller one' stopped/smallest.yaml ||
    fail 'interrupted: the best so far is not there'
pgrep -f "$TMPDIR/stopped" >>said && fail 'something runs on'

timeout 300 "$rq" shrink "$run" --out short --budget 3s >said 2>&1
rc=$?
[ $rc = 0 ] && grep -q 'within --budget' said && grep -q 'ended by --budget' short/smallest.yaml || fail "--budget: exit $rc"

# Every other time: one run says nothing, three do.
cat >seldom.yaml <<END
scenario: seldom
cluster: {nodes: 1, store: none}
job:
  max_restarts: 0
  run: [sh, -c, "echo x >>$TMPDIR/count; sleep 0.3; test \$(( \$(wc -l <$TMPDIR/count) % 3 )) != 2"]
timeline:
  - {id: a, when: {time: 10ms}, fault: worker-hang, on: workers, for: 50ms}
  - {id: b, when: {time: 30ms}, fault: worker-hang, on: workers, for: 50ms}
END
timeout 60 "$rq" run seldom.yaml --out flaky >said 2>&1
[ $? = 1 ] || fail 'the second run of three was to fail'
run=$(echo flaky/seldom-1-*)
timeout 60 "$rq" shrink "$run" --out flaky-once >said 2>&1
[ $? = 2 ] && grep -q 'does not fail any more, in 1 run' said || fail 'the third run of three was to pass'
[ ! -e flaky-once/smallest.yaml ] || fail 'a scenario was written that fails no more'
timeout 60 "$rq" shrink "$run" --out flaky-often --repeat 3 >said 2>&1
rc=$?
[ $rc = 0 ] && grep -qE 'fails the same, 1 of [123] runs? did' said || fail "--repeat: exit $rc"
[ "$(grep -c 'fault:' flaky-often/smallest.yaml)" = 1 ] || fail 'both faults were kept'
timeout 60 "$rq" shrink "$run" --out flaky-share --repeat 3 --share 100 >said 2>&1
rc=$?
[ $rc = 2 ] && grep -q 'in 1 run' said || grep -q 'in [123] runs' said || fail "--share: exit $rc"
exit $bad
