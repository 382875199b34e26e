#!/usr/bin/env bash
# How workers are ended, as the kernel tells it: a worker that is deaf to SIGTERM, and has a child, gets it with its child,
# lives for its 2 s, and is killed then. The other direction is in the cases of the check.
# deadline: 60 s
set -u
. tests/live/runs.bash
cat >"$dir/deaf.sh" <<'END_OF_JOB'
#!/bin/bash
trap '' TERM
sleep 1000 &
ranktrain --steps=30 --compute-ms=5 --checkpoint-every=10 "--checkpoint-dir=$1"
code=$?
# Its peer is gone, and it waits for a child that nobody ends but with the group.
[ $code = 0 ] || wait
kill -KILL $!
exit $code
END_OF_JOB
chmod +x "$dir/deaf.sh"
cat >"$dir/s.yaml" <<END_OF_SCENARIO
scenario: stop_signals
cluster: {nodes: 2}
job: {max_restarts: 1, run: ["$dir/deaf.sh", "{shared}/ckpt"]}
timeline: [{when: {step: 15}, fault: worker-kill, on: rank 1}]
expect: {outcome: succeeded, restarts: 1}
END_OF_SCENARIO
runs "a deaf worker" 0 "$dir/s.yaml"
if grep -q '"kind":"signals","seen":false' "$dir"/out/*/history.jsonl; then
    grep -h '"kind":"signals"' "$dir"/out/*/history.jsonl
    exit 77
fi
recorded "who was in its group" '"kind":"signal-group".*"name":"sleep"'
cat "$dir"/out/*/verdict.json | grep -oE '"check": ?"stop_signals"[^}]*' >"$dir/found"
grep -q '1 killed in time' "$dir/found" || fail "the check says otherwise: $(cat "$dir/found")"
exit $failed
