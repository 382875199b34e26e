#!/usr/bin/env bash
# A worker is killed, the others fail over it, and the job with them. Not all of them name a model then; but the report begins
# with how the job ended, and with the last words of one who lived on.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

cat >"$dir/fails.yaml" <<EOF
cluster: {nodes: 2}
job:
  max_restarts: 0
  rdzv_conf: $patient_map
  run: [bash, -c, "trap '' TERM; ranktrain --steps=40; rc=\$?; [ \$rc = 0 ] || echo 'lost a peer and cannot go on'; exit \$rc"]
timeline:
  - {when: {step: 17}, fault: worker-kill, on: rank 1}
observe: {loss: '^accuracy (.*)'}
expect: {outcome: succeeded, model: same-as-undisturbed}
limits: {total: 240s}
EOF
runs 'a job that fails over a killed worker' 1 "$dir/fails.yaml"
said 'a job that fails over a killed worker' '(x|✗) model'
said 'a job that fails over a killed worker' 'failed: outcome'
[ "$(head -n 20 "$dir/said" | grep -c '^broken')" = 1 ] && grep -q '^broken *Outcome' "$dir/said" || fail 'the report begins with something else'
said 'a job that fails over a killed worker' 'last words .*cannot go on'
exit $failed
